import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { Agent, request } from "undici";
import { comparable, QUESTIONS, type Question } from "./answers.ts";
import { controlPlaneBuilt } from "./build.ts";
import { realSubject, type Subject, simulatedSubject } from "./subject.ts";

async function ask({ url, token }: Subject, agent: Agent, question: Question): Promise<unknown> {
  const { method, path, body } = question;
  const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { authorization: `Bearer ${token}`, "content-type": question.contentType ?? contentType };
  const answer = await request(`${url}${path}`, {
    method,
    headers,
    dispatcher: agent,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, body: text.startsWith("{") ? comparable(JSON.parse(text)) : text };
}

suite("a simulated cluster answers as a real one", { skip: !controlPlaneBuilt() }, () => {
  let simulated: Subject;
  let real: Subject;
  let agent: Agent;
  /** Ends what was started, also if something after it could not be. */
  const ends: (() => Promise<void>)[] = [];

  before(async () => {
    simulated = await simulatedSubject();
    ends.push(() => simulated.stop());
    real = await realSubject();
    ends.push(() => real.stop());
    agent = new Agent({ connect: { ca: real.certificate ?? "" } });
    ends.push(() => agent.close());
  });

  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  for (const [name, question] of Object.entries(QUESTIONS)) {
    test(`when ${name}`, async () => {
      const expected = await ask(real, agent, question);
      assert.deepEqual(await ask(simulated, agent, question), expected);
    });
  }
});
