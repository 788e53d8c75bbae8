// The registry clients of JavaScript behind JSON lines: one command per line on standard input, one response per line on
// standard output. Arguments: which client, and the registry's URL.
"use strict";

const readline = require("node:readline");

const [which, url] = process.argv.slice(2);
const client = require(`./${which}`)(url);

async function respond(line) {
  const command = JSON.parse(line);
  try {
    const result = await client[command.call](command);
    return { result: result === undefined ? null : result };
  } catch (error) {
    return { error: client.errorCode(error), message: String(error.message) };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await respond(line)) + "\n");
  }
  process.exit(0);
})();
