"""SGLang's engine behind standard input and output, one JSON object a line: `python offline_worker.py` with SGLang's own server arguments.

First it writes {"ready": true, "places": 16, "model": ...}. Then it reads {"id", "messages" or "prompt", "sampling", "template"}, all at
once if one likes, and answers {"id", "text", "finish_reason", "prompt", "output", "cached"} as each comes to its end; {"id", "count": true,
...} is answered by {"id", "prompt"}; {"abort": id} cancels a question. A question that fails is answered by {"id", "error"}. It ends
when its standard input closes. It runs in SGLang's environment: it needs nothing but the standard library and SGLang.
"""

# pyright: basic, reportMissingImports=false
import asyncio
import json
import os
import sys


def main(arguments):
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what SGLang prints is no answer
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.server_args import prepare_server_args

    server_args = prepare_server_args(arguments)
    engine = Engine(server_args=server_args)
    try:
        engine.loop.run_until_complete(Worker(engine, output).work(server_args))
    finally:
        engine.shutdown()


class Worker:
    """Questions under way, and the engine that answers them."""

    def __init__(self, engine, output):
        self.engine, self.output, self.tasks = engine, output, {}
        self.tokenizer = engine.tokenizer_manager.tokenizer

    async def work(self, server_args):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self.send({"ready": True, "places": server_args.max_running_requests or 64, "model": server_args.served_model_name})
        while line := await reader.readline():
            asked = json.loads(line)
            if "abort" in asked:
                self.engine.tokenizer_manager.abort_request(rid=asked["abort"])
                continue
            task = loop.create_task(self.answer(asked))
            self.tasks[asked["id"]] = task
            task.add_done_callback(lambda _, name=asked["id"]: self.tasks.pop(name, None))
        for task in list(self.tasks.values()):
            task.cancel()

    async def answer(self, asked):
        try:
            tokens = self.tokens(asked)
            if asked.get("count"):
                self.send({"id": asked["id"], "prompt": len(tokens)})
                return
            made = await self.engine.async_generate(input_ids=tokens, sampling_params=asked["sampling"], rid=asked["id"])
        except Exception as error:
            self.send({"id": asked["id"], "error": f"{type(error).__name__}: {error}"[:2_000]})
            return
        about = made["meta_info"]
        counted = {"prompt": about["prompt_tokens"], "output": about["completion_tokens"], "cached": about.get("cached_tokens", 0)}
        reason = about["finish_reason"] or {}
        self.send(
            {"id": asked["id"], "text": made["text"], "finish_reason": reason.get("type"), "why": reason.get("message", ""), **counted}
        )

    def tokens(self, asked):
        if "messages" not in asked:
            return self.tokenizer.encode(asked["prompt"])
        text = self.tokenizer.apply_chat_template(asked["messages"], tokenize=False, add_generation_prompt=True, **asked["template"])
        return self.tokenizer.encode(text, add_special_tokens=False)

    def send(self, what):
        self.output.write(json.dumps(what) + "\n")
        self.output.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
