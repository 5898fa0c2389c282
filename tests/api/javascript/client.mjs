// A user of OpenAI's JavaScript client: chat whole and streamed, responses with their session, models, an error. Prints one JSON object.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const earlier = [
  { role: "user", content: "We ordered the oak desk from Nordhaus for $ 742." },
  { role: "assistant", content: "Noted: the oak desk, $ 742." },
];
const question = { role: "user", content: "What did the oak desk from Nordhaus cost?" };
const request = { model: "pandora", user: "jan", messages: [...earlier, question], metadata: { ticket: "17" } };

const whole = await client.chat.completions.create(request);
const answer = whole.choices[0].message.content;

let streamed = "";
let usage = null;
const messages = [...request.messages, { role: "assistant", content: answer }, { role: "user", content: "Which desk did we order?" }];
for await (const chunk of await client.chat.completions.create({ ...request, messages, stream: true, stream_options: { include_usage: true } })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}

const first = await client.responses.create({ model: "pandora", user: "kim", input: "The boiler was serviced on 3 May 2026 for 120 euros." });
const events = [];
const stream = await client.responses.create({
  model: "pandora", user: "kim", previous_response_id: first.id, input: "When was the boiler serviced?", stream: true,
});
let completed = null;
for await (const event of stream) {
  events.push(event.type);
  if (event.type === "response.completed") completed = event.response;
}

const names = [];
for await (const model of client.models.list()) names.push(model.id);

let fault = null;
try {
  await client.chat.completions.create({ ...request, model: "gpt-9" });
} catch (error) {
  fault = { kind: error.constructor.name, status: error.status, param: error.param, code: error.code, message: error.message };
}

console.log(JSON.stringify({
  answer, finish: whole.choices[0].finish_reason, metadata: whole.metadata, turn: whole.pandora.turn, streamed, usage,
  events, response: completed.output[0].content[0].text, previous: completed.previous_response_id === first.id,
  sessions: [first.pandora.session, completed.pandora.session], names, fault,
}));
