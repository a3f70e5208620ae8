"""Starts llama.cpp's own server out of the xllamacpp wheel, with llama-server's flags.

    launcher.py --info            print build facts as JSON and leave
    launcher.py -m M --port P ... serve until SIGTERM or SIGINT

Only the flags below are known; an unknown one is an error (exit 2), never ignored.
"""

import argparse
import json
import signal
import sys


def parse(argv):
    p = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    p.add_argument("--info", action="store_true")
    p.add_argument("-m", "--model")
    p.add_argument("-a", "--alias")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=8080)
    p.add_argument("-c", "--ctx-size", type=int, default=0)
    p.add_argument("-t", "--threads", type=int)
    p.add_argument("-tb", "--threads-batch", type=int)
    p.add_argument("--threads-http", type=int)
    p.add_argument("-b", "--batch-size", type=int)
    p.add_argument("-ub", "--ubatch-size", type=int)
    p.add_argument("-np", "--parallel", type=int, default=1)
    p.add_argument("--jinja", action="store_true", help="always on here")
    p.add_argument("--chat-template-file")
    p.add_argument("--no-warmup", action="store_true")
    p.add_argument("--no-repack", action="store_true")
    p.add_argument("--swa-full", action="store_true")
    p.add_argument("--cache-ram", type=int, help="MiB")
    p.add_argument("--ctx-checkpoints", type=int)
    p.add_argument("--metrics", action="store_true")
    p.add_argument("--no-webui", action="store_true")
    p.add_argument("-s", "--seed", type=int)
    p.add_argument("--api-key")
    p.add_argument("-lv", "--verbosity", type=int)
    return p, p.parse_args(argv)


def params_of(args, xllamacpp):
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.hostnames = [args.host]
    params.port = args.port
    params.n_ctx = args.ctx_size
    params.n_parallel = args.parallel
    params.use_jinja = True
    params.warmup = not args.no_warmup
    params.no_extra_bufts = args.no_repack
    params.swa_full = args.swa_full
    params.endpoint_metrics = args.metrics
    params.ui = False
    if args.alias:
        params.model_alias = {args.alias}
    if args.threads:
        params.cpuparams.n_threads = args.threads
        params.cpuparams_batch.n_threads = args.threads
    if args.threads_batch:
        params.cpuparams_batch.n_threads = args.threads_batch
    if args.threads_http:
        params.n_threads_http = args.threads_http
    if args.batch_size:
        params.n_batch = args.batch_size
    if args.ubatch_size:
        params.n_ubatch = args.ubatch_size
    if args.chat_template_file:
        with open(args.chat_template_file, encoding="utf-8") as file:
            params.chat_template = file.read()
    if args.cache_ram is not None:
        params.cache_ram_mib = args.cache_ram
    if args.ctx_checkpoints is not None:
        params.n_ctx_checkpoints = args.ctx_checkpoints
    if args.seed is not None:
        params.sampling.seed = args.seed
    if args.api_key:
        params.api_keys = [args.api_key]
    if args.verbosity is not None:
        params.verbosity = args.verbosity
    return params


def main():
    parser, args = parse(sys.argv[1:])
    # The server runs on threads of its own. They inherit this mask, so the signals stay
    # pending until the main thread takes them below.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)

    import xllamacpp
    from xllamacpp import xllamacpp as extension

    info = {
        "version": xllamacpp.__version__,
        "build": xllamacpp.BUILD_INFO,
        "system_info": xllamacpp.get_system_info(),
        "binary": extension.__file__,
    }
    if args.info:
        print(json.dumps(info))
        return
    if not args.model:
        parser.error("--model is missing")
    print(f"build: xllamacpp {info['version']} {json.dumps(info['build'])}", file=sys.stderr)
    print(f"system_info: {info['system_info']}", file=sys.stderr, flush=True)
    server = xllamacpp.Server(params_of(args, xllamacpp))
    print(f"serving on {server.listening_address}", file=sys.stderr, flush=True)
    signal.sigwait(stops)
    del server  # stops the loop and joins its threads


if __name__ == "__main__":
    main()
