"""SGLang's engine behind standard input and output, one JSON object a line: `python offline_worker.py` with SGLang's own server arguments.

    worker  {"ready": true, "slots": 16, "model": ...}                    once, when it is ready
    client  {"id", "messages" or "prompt", "sampling", "template"}        a question; many may be open at once
    worker  {"id", "text", "finish_reason", "prompt", "output", "cached"} its answer, with three token counts; or {"id", "error"}
    client  {"id", "count": true, "messages" or "prompt", ...}            answered by {"id", "prompt"}, the tokens of the prompt
    client  {"abort": id}                                                 cancels a question

The worker ends when its standard input closes. It runs in SGLang's environment, so it needs only the standard library and SGLang.
"""

# pyright: basic, reportMissingImports=false
import asyncio
import json
import os
import sys

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_ERROR_CHARACTERS = 2_000
DEFAULT_SLOTS = 64


def main(arguments):
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what SGLang prints goes to standard error
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.server_args import prepare_server_args

    server_args = prepare_server_args(arguments)
    engine = Engine(server_args=server_args)
    try:
        engine.loop.run_until_complete(Worker(engine, output).work(server_args))
    finally:
        engine.shutdown()


class Worker:
    """The open questions, and the engine that answers them."""

    def __init__(self, engine, output):
        self.engine, self.output, self.tasks = engine, output, {}
        self.tokenizer = engine.tokenizer_manager.tokenizer

    async def work(self, server_args):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self.send({"ready": True, "slots": server_args.max_running_requests or DEFAULT_SLOTS, "model": server_args.served_model_name})
        while line := await reader.readline():
            question = json.loads(line)
            if "abort" in question:
                self.engine.tokenizer_manager.abort_request(rid=question["abort"])
                continue
            task = loop.create_task(self.answer(question))
            self.tasks[question["id"]] = task
            task.add_done_callback(lambda _, name=question["id"]: self.tasks.pop(name, None))
        for task in list(self.tasks.values()):
            task.cancel()

    async def answer(self, question):
        try:
            tokens = self.tokens(question)
            if question.get("count"):
                self.send({"id": question["id"], "prompt": len(tokens)})
                return
            generated = await self.engine.async_generate(input_ids=tokens, sampling_params=question["sampling"], rid=question["id"])
        except Exception as error:
            self.send({"id": question["id"], "error": f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]})
            return
        meta = generated["meta_info"]
        token_counts = {"prompt": meta["prompt_tokens"], "output": meta["completion_tokens"], "cached": meta.get("cached_tokens", 0)}
        reason = meta["finish_reason"] or {}
        self.send(
            {
                "id": question["id"],
                "text": generated["text"],
                "finish_reason": reason.get("type"),
                "why": reason.get("message", ""),
                **token_counts,
            }
        )

    def tokens(self, question):
        if "messages" not in question:
            return self.tokenizer.encode(question["prompt"])
        text = self.tokenizer.apply_chat_template(question["messages"], tokenize=False, add_generation_prompt=True, **question["template"])
        return self.tokenizer.encode(text, add_special_tokens=False)

    def send(self, message):
        self.output.write(json.dumps(message) + "\n")
        self.output.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
