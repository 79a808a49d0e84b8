"""Runs a program whose standard error is a terminal of a given width, and passes on what it draws: terminal.py COLUMNS PROGRAM [ARGUMENT]..."""
import fcntl
import os
import pty
import struct
import sys
import termios

columns, program = int(sys.argv[1]), sys.argv[2:]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
process = os.fork()
if process == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(slave, 2)
    os.close(master)
    os.close(slave)
    os.environ["TERM"] = "xterm"
    os.execvp(program[0], program)
os.close(slave)
while True:
    try:
        drawn = os.read(master, 65536)
    except OSError:
        drawn = b""
    if not drawn:
        break
    os.write(1, drawn)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
