"""Linux and a few files as the memory of an emulated PC, for `.ci/avx512`: no disk, no BIOS.

guest.py FOLDER KERNEL COMMAND-LINE NAME=FILE...
    writes FOLDER/rom, FOLDER/parameters (for address 0x10000) and FOLDER/memory (for 1 MiB)
guest.py --tests
    reads cargo's messages and prints where the engine's unit tests are

The formats are those of Linux's documentation: "The Linux/x86 Boot Protocol" (32-bit entry) and
"initramfs buffer format".
"""

import json
import struct
import sys
from pathlib import Path

MIB = 1 << 20
MEMORY = 256 * MIB
PARAMETERS, COMMAND_LINE, KERNEL = 0x10000, 0x11000, MIB

DIRECTORY, PROGRAM, DEVICE = 0o040755, 0o100755, 0o020600
CONSOLE = (5, 1)


def archive(files):
    """The first file system: a console, and some programs by their names."""
    entries = {"dev": (DIRECTORY, b"", (0, 0)), "dev/console": (DEVICE, b"", CONSOLE)}
    for name, path in files:
        for folder in reversed(Path(name).parents[:-1]):
            entries[str(folder)] = (DIRECTORY, b"", (0, 0))
        entries[name] = (PROGRAM, Path(path).read_bytes(), (0, 0))
    entries["TRAILER!!!"] = (0, b"", (0, 0))
    out = bytearray()
    for number, (name, (mode, data, device)) in enumerate(entries.items()):
        name = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return out


def parameters(kernel, command_line, files_at, files_len):
    """The page that the kernel is told everything by, and its command line after it."""
    page = bytearray(COMMAND_LINE - PARAMETERS)
    end = 0x202 + kernel[0x201]
    page[0x1F1:end] = kernel[0x1F1:end]
    page[0x210] = 0xFF  # a loader without a number
    struct.pack_into("<II", page, 0x218, files_at, files_len)
    struct.pack_into("<I", page, 0x228, COMMAND_LINE)
    usable = ((0, 0x9F000), (MIB, MEMORY - MIB))
    page[0x1E8] = len(usable)
    for i, (start, length) in enumerate(usable):
        struct.pack_into("<QQI", page, 0x2D0 + 20 * i, start, length, 1)
    return page + command_line.encode() + b"\0"


def rom():
    """Enters protected mode and jumps into the kernel."""
    segments, table = 0x80, 0x88
    real = bytes.fromhex(
        "fa"  # cli
        "2e660f01168000"  # lgdt cs:[segments]
        "66b801000000 0f22c0"  # mov eax, 1; mov cr0, eax
        "66ea20000f001000"  # jmp 0x10:0xf0020
    )
    # The emulator gives memory to addresses in the order in which they are first used, and has
    # loaded a file as one piece: every 64 KiB from 1 MiB on are used in order.
    protected = bytes.fromhex(
        "66b81800 8ed8 8ec0 8ed0"  # mov ax, 0x18; mov ds, es, ss
        "bf00001000"  # mov edi, 1 MiB
        "8a07 81c700000100"  # again: mov al, [edi]; add edi, 64 KiB
        f"81ff{struct.pack('<I', MEMORY).hex()} 72f0"  # cmp edi, end; jb again
        f"be{struct.pack('<I', PARAMETERS).hex()}"  # mov esi, parameters
        "31db 31ed 31ff"  # xor ebx, ebp, edi
        f"b8{struct.pack('<I', KERNEL).hex()} ffe0"  # jmp kernel
    )
    image = bytearray(b"\xf4" * 0x10000)  # hlt
    descriptors = struct.pack("<QQQQ", 0, 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF)
    parts = (
        (0, real),
        (0x20, protected),
        (segments, struct.pack("<HI", len(descriptors) - 1, 0xF0000 + table)),
        (table, descriptors),
        (0xFFF0, bytes.fromhex("ea000000f0")),  # where a processor starts: jmp 0xf000:0
    )
    for at, part in parts:
        image[at : at + len(part)] = part
    return image


def write(folder, kernel_path, command_line, files):
    kernel = Path(kernel_path).read_bytes()
    code = kernel[512 * ((kernel[0x1F1] or 4) + 1) :]
    preferred, size = struct.unpack_from("<QI", kernel, 0x258)
    files_at = (preferred + size + 4 * MIB) // MIB * MIB
    held = archive(files)
    if files_at + len(held) > MEMORY - 32 * MIB:
        sys.exit(f"{len(held)} bytes of programs are too many for {MEMORY} bytes of memory")
    Path(folder, "rom").write_bytes(rom())
    Path(folder, "parameters").write_bytes(parameters(kernel, command_line, files_at, len(held)))
    with Path(folder, "memory").open("wb") as memory:
        memory.write(code)
        memory.seek(files_at - KERNEL)
        memory.write(held)


def unit_tests(messages):
    """Where cargo has put the engine's unit tests."""
    for line in messages:
        message = json.loads(line)
        target = message.get("target", {})
        if target.get("name") == "palindrome_engine" and target.get("kind") == ["lib"]:
            if message.get("executable"):
                return message["executable"]
    return sys.exit("cargo names no unit tests of the engine")


if __name__ == "__main__":
    if sys.argv[1] == "--tests":
        print(unit_tests(sys.stdin.readlines()))
    else:
        folder, kernel, command_line, *files = sys.argv[1:]
        write(folder, kernel, command_line, [file.split("=", 1) for file in files])
