//! The first process of an emulated machine: runs the tests with the arguments that it has, and
//! resets the machine when all that they printed has left the serial line.

use std::process::Command;

unsafe extern "C" {
    fn tcdrain(file: i32) -> i32;
    fn reboot(how: i32) -> i32;
}

fn main() {
    let arguments = std::env::args_os().skip(1);
    match Command::new("/tests").args(arguments).status() {
        Ok(status) => println!("the tests ended: {status}"),
        Err(error) => println!("the tests did not start: {error}"),
    }
    // SAFETY: two system calls that take numbers: standard output, and LINUX_REBOOT_CMD_RESTART.
    unsafe {
        tcdrain(1);
        reboot(0x0123_4567);
    }
}
