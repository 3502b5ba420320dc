"""Names that an answer has no honest use for, and what each of them does."""

from __future__ import annotations

import re

from flashcourse.words import Text


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


# Why a name is doubted: what it does.
MEMORY = Text("reaches into memory", "直接读写内存")
IMPORTS = Text("imports by other ways", "绕开普通的 import 导入模块")
FINISHED = Text("calls PyTorch's finished attention", "调用了 PyTorch 现成的注意力")
SOFTMAX = Text("calls softmax on whole rows", "对整行调用 softmax")
RECORDER = Text("changes what the recorder sees", "改变记录器看到的内容")
FRAMES = Text("looks into other frames", "查看其他栈帧")
RUNS_TEXT = Text("runs text as code", "把文本当作代码执行")
NAMES = Text("reaches names by text", "通过文本访问变量")
REACHES = Text("reaches things by name", "通过名字访问对象")
PRIVATE = Text("reaches what is not meant for answers", "访问了答案不该接触的内容")
TOOLS = Text("uses the course's own tools inside an answer", "在答案里使用课程自带的工具")
CHANGES = Text("changes a module that others use", "改动了公用的模块")
LEAVES = Text("computes where nothing is recorded", "在不被记录的地方计算")
DISGUISE = Text("can stand for an exponential", "可以代替指数函数")
BESIDE = Text("can change things later, beside the tests", "可以在测试进行时另行改动")
UNKNOWN = Text("is a module that answers have no use for", "是答案用不到的模块")
POSES = Text("makes values that are not what they seem", "构造名不副实的值")
HANDED_ON = Text("is a module, handed on as a value", "把模块当作值传递")
UNREAD = Text("can't be read: it is too long, or nested too deeply", "太长或嵌套太深，无法检查")
OWN_CELL = Text("own cell", "自己加的单元格")

# Modules that look into or change the running process.
MODULES = {
    "ctypes": MEMORY,
    "gc": Text("looks for objects of the grader's", "寻找评分程序的对象"),
    "inspect": Text("reads other code's frames or source", "读取其他代码的栈帧或源码"),
    "sys": Text("can change modules, tracing or output", "可以改动模块、跟踪函数或输出"),
    "os": Text("reaches the operating system", "接触操作系统"),
    "subprocess": Text("starts other programs", "启动其他程序"),
    "multiprocessing": Text("starts other processes", "启动其他进程"),
    "threading": BESIDE,
    "signal": Text("can outlive a time limit", "可以绕过时间限制"),
    "socket": Text("opens connections", "建立网络连接"),
    "importlib": IMPORTS,
    "builtins": Text("can change Python itself", "可以改动 Python 本身"),
    "pickle": Text("runs code out of data", "从数据中执行代码"),
    "atexit": Text("runs code at the end", "在进程结束时执行代码"),
    "mmap": MEMORY,
    "faulthandler": Text("writes outside its output", "在正常输出之外写入"),
    "unittest": Text("can replace parts of a module", "可以替换模块的一部分"),
    "types": Text("makes code objects", "构造代码对象"),
    "concurrent": BESIDE,
    "asyncio": BESIDE,
}
# All else that a cell may import. Lists of what is bad are never complete.
HARMLESS = _words(
    "torch math numpy typing dataclasses functools itertools collections operator random time copy",
    "string re statistics warnings abc enum numbers fractions decimal textwrap pprint __future__ ",
    "flashcourse",
)
TO_TRY = _words(
    "matplotlib IPython ipywidgets pandas scipy seaborn plotly tqdm einops PIL datetime json csv ",
    "timeit platform pathlib logging contextlib heapq bisect sympy triton jax tensorflow",
)
TORCH = _words(
    "torch torch.nn torch.nn.functional torch.testing torch.autograd torch.linalg torch.special ",
    "torch.cuda torch.profiler torch.backends torch.utils torch.utils.benchmark torch.utils.data ",
    "torch.utils.checkpoint",
)
CALLS = {
    "scaled_dot_product_attention": FINISHED,
    "softmax": SOFTMAX,
    "log_softmax": SOFTMAX,
    "MultiheadAttention": FINISHED,
    "exact_attention": Text("calls the course's own exact attention", "调用了课程自带的精确注意力"),
    "settrace": RECORDER,
    "setprofile": RECORDER,
    "_getframe": FRAMES,
    "exec": RUNS_TEXT,
    "eval": RUNS_TEXT,
    "__import__": IMPORTS,
    "globals": NAMES,
    "setattr": Text("changes things by name", "通过名字改动对象"),
    "getattr": REACHES,
    "vars": NAMES,
    "locals": NAMES,
    "compile": RUNS_TEXT,
    "open": Text("reads or writes files", "读写文件"),
    "modules": Text("reaches other modules", "访问其他模块"),
    "f_back": FRAMES,
    "tb_frame": FRAMES,
    "__traceback__": FRAMES,
    "__dict__": REACHES,
    "__builtins__": Text("reaches Python itself", "访问 Python 内部"),
    "__subclasses__": Text("looks for classes of the grader's", "寻找评分程序的类"),
    "get_ipython": Text("reaches the shell that runs the cells", "访问运行单元格的 shell"),
    "_C": PRIVATE,
    "ops": Text("calls PyTorch's inner operators", "调用 PyTorch 内部的算子"),
    "attrgetter": REACHES,
    "methodcaller": REACHES,
    "breakpoint": FRAMES,
    "as_subclass": Text("returns a tensor that is not what it seems", "返回的张量名不副实"),
    "__torch_dispatch__": RECORDER,
    "__torch_function__": RECORDER,
}
TO_COMPARE_WITH = _words(
    "scaled_dot_product_attention softmax log_softmax MultiheadAttention exact_attention",
)
SHOWING = _words("print help dir type display")
OURS = ("torch", "flashcourse", "numpy", "IPython", "math")
# Modules that also go by these names as somebody's variable, or as another module's part.
AMBIGUOUS = frozenset(("types", "signal", "socket", "inspect", "mmap", "pickle"))
USUAL_DUNDERS = _words(
    "__init__ __name__ __doc__ __version__ __len__ __call__ __repr__ __str__ __class__ __file__ ",
    "__enter__ __exit__ __annotations__ __future__",
)
# In a function of q, k, v and block_size, where the record has to see each exponential.
ELSEWHERE = frozenset(("numpy", "tolist", "from_numpy", "__array__", "jit", "compile"))
LIKE_EXP = _words(
    "sigmoid expit logsigmoid tanh sinh cosh atanh logcumsumexp float_power ",
    "matrix_exp gammainc gammaincc ldexp polar complex erf erfc softplus lgamma",
)
NUMPY_NUMBERS = _words(
    "inf nan pi e newaxis arange sqrt log log2 ceil floor prod float16 float32 float64 ndarray"
)
FINISHED_PARTS = ("scaled_dot_product", "multi_head_attention", "multiheadattention", "flex_atten")
POSING_BASES = _words(
    "Tensor Parameter TorchDispatchMode TorchFunctionMode int float str bytes type"
)
IDLE_MAGICS = _words("matplotlib config precision pip conda who whos pinfo pinfo2")
TIMING_MAGICS = _words("time timeit capture")
IDLE_COMMAND = re.compile(r"(pip3?|nvidia-smi|ls|pwd|lscpu|free|nproc)( [\w .=/+\[\]-]*)?")
