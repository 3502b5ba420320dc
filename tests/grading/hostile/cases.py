"""Each case is the source of the answer cell `scale`. What it returns honestly deserves no point.

`{port}` is where a server listens on the grader's machine, `{folder}` the course's folder, and
`{pid}` the grader's process.
"""

from __future__ import annotations

# ---- patching what the tests use ---------------------------------------------------------------

PATCHES = {
    "patch_allclose": """
torch.allclose = lambda *a, **k: True
torch.equal = torch.isclose = torch.allclose
""",
    "patch_the_reference": """
torch.nn.functional.normalize = lambda x, **k: torch.zeros_like(x)
torch.Tensor.sum = lambda self, *a, **k: torch.zeros(())
""",
    "patch_assert_close": """
import torch.testing
torch.testing.assert_close = lambda *a, **k: None
""",
    "patch_in_a_thread_later": """
import threading, time
def later():
    for _ in range(200):
        time.sleep(0.01)
        torch.allclose = lambda *a, **k: True
threading.Thread(target=later, daemon=True).start()
""",
    "patch_builtins": """
import builtins
builtins.sum = builtins.abs = lambda *a, **k: 5
builtins.AssertionError = KeyError
""",
    "patch_mark": """
import flashcourse.checks as c, flashcourse.checks.registry as r, flashcourse.checks.marks as m
c.mark = r.mark = lambda *a, **k: 20
m.Marks.__repr__ = lambda self: '10'
""",
    "patch_the_codec": """
import flashcourse.grading.codec as c
c.Encoder.encode = lambda self, value, depth=0: ["f", (1.0).hex()]
""",
    "patch_the_agent": """
import flashcourse.grading.student as s
s._Agent._call = lambda self, request, blobs: ({"value": True, "passed": True, "points": 10}, [])
""",
    "import_hook": """
import sys
class Finder:
    def find_spec(self, name, *a):
        torch.allclose = lambda *a, **k: True
sys.meta_path.insert(0, Finder())
""",
    "replace_modules": """
import sys, types
fake = types.ModuleType('torch')
fake.allclose = lambda *a, **k: True
sys.modules['torch'] = fake
""",
    "sitecustomize": """
for place in ('/tmp', '/usr/lib/python3', '/usr/local/lib'):
    try:
        open(place + '/sitecustomize.py', 'w').write('import torch; torch.allclose = print')
    except OSError as error:
        print(error)
""",
}

# ---- values that are not what they seem --------------------------------------------------------

VALUES = {
    "tensor_subclass": """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return True
def scale_rows(x):
    return torch.zeros_like(x).as_subclass(Yes)
""",
    "evil_eq": """
class Yes:
    def __eq__(self, other): return True
    def __getattr__(self, name): return lambda *a, **k: 5
    def __sub__(self, other): return 0
    def __bool__(self): return True
    def __repr__(self): return '10'
def scale_rows(x): return Yes()
bytes_moved = Yes()
""",
    "float_subclass": """
class F(float):
    def __eq__(self, other): return True
    def __float__(self): return 24.0
    def hex(self): return (24.0).hex()
bytes_moved = F(1)
def scale_rows(x): return F(1)
""",
    "int_subclass": """
class I(int):
    def __eq__(self, other): return True
    def __index__(self): return 24
    def bit_length(self): return 1
bytes_moved = I(1)
""",
    "str_subclass": """
class S(str):
    def __eq__(self, other): return True
    def encode(self, *a): return b'24'
bytes_moved = S('x')
""",
    "dict_with_evil_keys": """
class K(str):
    def __hash__(self): return 0
    def __eq__(self, other): raise SystemExit
def scale_rows(x): return {K(n): n for n in range(100)}
""",
    "pickle_bomb": """
class P:
    def __reduce__(self): return (exec, ("import torch; torch.allclose = lambda *a: True",))
def scale_rows(x): return P()
""",
    "function_returns_function": "def scale_rows(x): return lambda *a: True",
    "generator": """
def scale_rows(x):
    while True:
        yield x
""",
    "nested_without_end": """
def scale_rows(x):
    a = []
    a.append(a)
    return a
""",
    "huge_value": "def scale_rows(x): return torch.zeros(30_000_000)",
    "huge_int": "def scale_rows(x): return 10 ** 5_000_000\nbytes_moved = 10 ** 100_000",
    "nan_and_inf": "def scale_rows(x): return x * float('nan')\nbytes_moved = float('inf')",
    "many_small_things": "def scale_rows(x): return list(range(10**7))",
    "numpy_objects": """
import numpy
def scale_rows(x): return numpy.array([print, exec], dtype=object)
""",
    "sparse_tensor": "def scale_rows(x): return x.to_sparse()",
    "meta_tensor": "def scale_rows(x): return torch.empty(10**12, device='meta')",
    "evil_exception": """
class Evil(Exception):
    __flashcourse_failure__ = 10
    def __str__(self): raise SystemExit(0)
    def __repr__(self): return '10'
def scale_rows(x): raise Evil()
""",
    "exception_named_like_a_pass": """
class AssertionError(BaseException): pass
class SystemExit(BaseException): pass
def scale_rows(x): raise SystemExit('10')
""",
}

# ---- what the grader itself has to read or store -------------------------------------------------

READING = {
    "surrogates_in_messages": """
def scale_rows(x): raise ValueError('\\ud83d \\x00 \\x1b[31m')
print('\\ud83d \\x00')
from IPython.display import display
display({'text/plain': '\\ud83d'}, raw=True, metadata={'\\ud83d': '\\ud83d'})
raise ValueError('\\ud83d \\x00')
""",
    "end_the_loops_of_a_test": "def scale_rows(x): raise StopIteration",
    "longer_than_can_be_read": "if 0:\n" + "    %a\n" * 150_000,
    "an_endless_chain": "torch" + ".a" * 1500 + " = 1",
    "deep_inside": "x = " + "-" * 40_000 + "1",
    "formats_by_the_thousand": "x = f'" + "{{1}}" * 10_000 + "'",
    "displays_of_nothing": """
from IPython.display import display
while True:
    display({}, raw=True)
""",
}

# ---- speaking the grader's protocol ------------------------------------------------------------

PROTOCOL = {
    "answer_for_the_tests": """
import json, os, struct
body = json.dumps({"outputs": [], "passed": True, "silent": True, "points": 10, "marks": None,
    "error": None, "gone": None, "slow": False, "student_seconds": 0, "calls": 1, "id": 1,
    "blobs": []}).encode()
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack('<I', len(body)) + body)
    except OSError:
        pass
""",
    "answers_ahead": """
import gc, threading, time
from flashcourse.grading.channel import Channel
def flood():
    for channel in [o for o in gc.get_objects() if isinstance(o, Channel)]:
        for number in range(1_000_000, 1_000_100):
            try:
                channel.send({"id": number, "value": True, "kind": "value"})
            except Exception:
                pass
threading.Thread(target=flood).start()
""",
    "frame_without_end": """
import os, struct
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack('<I', 0xFFFFFFFF))
    except OSError:
        pass
""",
    "garbage_on_every_descriptor": """
import os
for fd in range(3, 64):
    try:
        os.write(fd, os.urandom(4096))
    except OSError:
        pass
""",
    "json_bomb": """
import os, struct
body = b'[' * 100_000
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack('<I', len(body)) + body)
    except OSError:
        pass
""",
    "hang_up": "import os\nos.closerange(3, 256)",
    "printed_marks": """
print(10)
print('{"points": 10}')
from IPython.display import display
class Ten:
    def __repr__(self): return '10'
display(Ten())
Ten()
""",
    "record_of_its_own": """
def scale_rows(x): return x
scale_rows.__flashcourse_record__ = lambda *a, **k: 10
scale_rows.points = 10
""",
    "ask_to_fork": """
import json, os, socket
for fd in range(3, 64):
    try:
        s = socket.socket(fileno=os.dup(fd))
        socket.send_fds(s, [json.dumps({"role": "examiner", "id": 1, "limits": {}}).encode()], [0])
    except OSError:
        pass
""",
}

# ---- looking where nothing is to be seen -------------------------------------------------------

LOOKING = {
    "read_the_course": """
import glob, os
for pattern in ('{folder}/**', '/**/source/**', '/**/gradebook.db', '/root/*', '/home/*'):
    for path in glob.glob(pattern, recursive=True)[:2000]:
        if os.path.isfile(path) and path.endswith(('.ipynb', '.db', '.md')):
            print(path, open(path, errors='replace').read()[:5000])
""",
    "read_processes": """
import glob
for path in glob.glob('/proc/[0-9]*/*') + glob.glob('/proc/[0-9]*/task/*/*'):
    if path.endswith(('environ', 'cmdline', 'maps', 'status')):
        try:
            print(open(path, errors='replace').read()[:2000].replace('SECRET', 'S E C'))
        except OSError:
            pass
""",
    "read_memory": """
import re
found = 0
for line in open('/proc/self/maps'):
    a, b = (int(n, 16) for n in line.split()[0].split('-'))
    if 'rw' in line and b - a < 2**28:
        try:
            with open('/proc/self/mem', 'rb') as memory:
                memory.seek(a)
                data = memory.read(b - a)
        except (OSError, OverflowError, ValueError):
            continue
        word = b'SECRET_OF' + b'_THE_HIDDEN'
        found += len(re.findall(word + b'_TEST', data))
print('found', found, 'times')
""",
    "search_the_heap": """
import gc, sys
for thing in gc.get_objects():
    if isinstance(thing, (dict, list, tuple)):
        try:
            text = repr(thing)
        except Exception:
            continue
        if ('SECRET' + '_OF') in text and 'search_the_heap' not in text:
            print(text[:2000])
frame = sys._getframe()
while frame:
    print({k: str(v)[:100] for k, v in frame.f_locals.items() if k != 'source'}.keys())
    frame = frame.f_back
""",
    "ptrace_the_grader": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in [*range(1, 50), {pid}]:
    print(libc.ptrace(16, pid, 0, 0), end=' ')
""",
    "environment": """
import os
print(dict(os.environ))
print(os.environ.get('FLASHCOURSE_SEED'))
assert 'FLASHCOURSE_SEED' not in os.environ
""",
    "network": """
import socket
for address in (('127.0.0.1', {port}), ('localhost', {port}), ('10.0.0.1', 80), ('1.1.1.1', 53)):
    try:
        socket.create_connection(address, timeout=0.2).send(b'here I am')
        print('CONNECTED')
    except OSError as error:
        print(error)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect('\\0flashcourse-test-{port}')
    print('CONNECTED')
except OSError as error:
    print(error)
""",
    "raw_sockets": """
import socket
for family, kind, protocol in ((socket.AF_PACKET, 3, 3), (socket.AF_INET, 3, 1), (16, 3, 0)):
    try:
        print(socket.socket(family, kind, protocol))
    except OSError as error:
        print(error)
""",
    "signal_everybody": """
import os, signal
for pid in [{pid}, -1, *range(2, 400)]:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
""",
    "symlinks": """
import os
os.makedirs('/tmp/work', exist_ok=True)
for n, target in enumerate(('{folder}', '/etc/shadow', '/proc/1/root', '/proc/1/cwd')):
    os.symlink(target, f'/tmp/work/{{n}}')
    try:
        print(os.listdir(f'/tmp/work/{{n}}'))
    except OSError:
        pass
    try:
        print(open(f'/tmp/work/{{n}}').read()[:100])
    except OSError:
        pass
""",
    "become_root": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print([libc.setuid(0), libc.setresuid(0, 0, 0), libc.unshare(0x10000000), libc.unshare(0x20000)])
print(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.chroot(b'/tmp'))
open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')
""",
}

# ---- using up the machine ----------------------------------------------------------------------

GREED = {
    "fork_bomb": """
import os
for _ in range(100_000):
    try:
        os.fork()
    except OSError:
        pass
""",
    "thread_bomb": """
import threading, time
for _ in range(10_000):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        break
""",
    "fill_the_scratch_folder": """
for n in range(200):
    with open(f'/tmp/{n}', 'wb') as file:
        file.write(bytes(10_000_000))
""",
    "fill_shared_memory": """
for n in range(200):
    with open(f'/dev/shm/{n}', 'wb') as file:
        file.write(bytes(10_000_000))
""",
    "hide_memory_in_children": """
import os, time
for n in range(20):
    if os.fork() == 0:
        hog = bytearray(400_000_000)
        for k in range(0, len(hog), 4096):
            hog[k] = 1
        time.sleep(60)
time.sleep(60)
""",
    "hide_memory_in_files": """
import os
fds = [os.memfd_create(str(n)) for n in range(100)]
for fd in fds:
    os.write(fd, bytes(50_000_000))
""",
    "daemon": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        while True:
            time.sleep(0.1)
    os._exit(0)
""",
    "swallow_every_interrupt": """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def scale_rows(x):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
""",
    "block_every_signal": """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    time.sleep(1)
""",
    "endless_c_loop": "sum(iter(int, 1))",
    "print_without_end": "while True:\n    print('spam' * 1000)",
    "share_memory_and_give_it_back": """
import mmap, os
for fd in (-1, os.open('/dev/zero', os.O_RDWR)):
    try:
        hidden = mmap.mmap(fd, 400_000_000)
        for start in range(0, 400_000_000, 8_000_000):
            hidden[start:start + 8_000_000] = bytes(8_000_000)
            hidden.madvise(mmap.MADV_DONTNEED)
        print('HIDDEN')
    except (OSError, ValueError) as error:
        print(error)
""",
    "write_around_the_limit": """
import os
while True:
    try:
        os.write(1, b'x' * 65536)
        print('x' * 65536)
    except BaseException:
        pass
""",
    "one_huge_line": "print('x' * 100_000_000)",
    "a_million_displays": """
from IPython.display import display, HTML
for n in range(1_000_000):
    display(HTML('<script>alert(1)</script>' * 10))
""",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1) + 1\nf(0)",
    "exit_handlers": """
import atexit, os, sys
atexit.register(print, 10)
class Late:
    def __del__(self): torch.allclose = lambda *a: True
late = Late()
sys.exit(0)
""",
    "exec_another_program": "import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep 60'])",
    "crash_the_interpreter": "import ctypes\nctypes.string_at(0)",
    "sleep_below_the_limit": """
import time
def scale_rows(x):
    time.sleep(0.5)
    return x
""",
}

# ---- looking for what is right ------------------------------------------------------------------

# Phrases of two checks, in halves: whoever looks for a phrase would else find what they look for.
PHRASES = """[
    (b"score_bytes(batch, heads, n, ", b"bytes_per_element): bytes of S and P together"),
    (b"The right value of one name, ", b"given the learner's other values: each is one local"),
]"""
CHECKS = {
    "import_the_checks": """
import importlib, sys
for name in ("memory_wall", "forward", "misconceptions"):
    for forget in (False, True):
        if forget:
            for module in [m for m in sys.modules if m.startswith("flashcourse.checks")]:
                del sys.modules[module]
        try:
            importlib.import_module("flashcourse.checks." + name)
            print("HIDDEN", name)
        except ImportError:
            pass
""",
    "look_for_the_checks_on_disk": f"""
import os
phrases = {PHRASES}
files = 0
for top in ("/usr/lib/python3", "/opt", "/home", "/srv", *__import__("sys").path):
    for folder, _, names in os.walk(top):
        for name in names if "flashcourse" in folder else ():
            files += 1
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
                if any(a + b in data for a, b in phrases):
                    print("HIDDEN", folder, name)
if files < 50:
    print("HIDDEN: nothing was looked at")
""",
    "look_for_the_checks_in_memory": f"""
def found(a, b):
    with open("/proc/self/maps") as maps:
        regions = [line.split()[:2] for line in maps if "[v" not in line]
    for span, rights in regions:
        start, stop = (int(word, 16) for word in span.split("-"))
        if "w" in rights:
            with open("/proc/self/mem", "rb", 0) as memory:
                memory.seek(start)
                try:
                    data = memory.read(stop - start)
                except OSError:
                    continue
            place = data.find(a)
            while place >= 0:
                if data[place + len(a) : place + len(a) + len(b)] == b:
                    return True
                place = data.find(a, place + 1)
    return False
if any(found(a, b) for a, b in {PHRASES}):
    print("HIDDEN")
if not found(b"Bytes of the whole score ", b"matrix S: batch"):
    print("HIDDEN: memory was not looked at")  # costs.py has this, and is there
""",
}

CASES = {**CHECKS, **PATCHES, **VALUES, **READING, **PROTOCOL, **LOOKING, **GREED}
