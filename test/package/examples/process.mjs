// Runs the modules that it is given, one after the other, and tells its parent of each: that it
// begins, and how it ended.
const [servers, ...modules] = process.argv.slice(2);
const { disconnectAll } = await import(servers);

/** What failed without a rejection: warnings, and errors that nothing has caught. */
let troubles = [];
process.on("warning", ({ name, code, message }) => troubles.push(`${name} ${code}: ${message}`));
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => troubles.push(`${event}: ${error?.stack ?? error}`));

for (const [index, module] of modules.entries()) {
  process.send({ begins: index });
  troubles = [];
  try {
    const { default: example } = await import(module);
    const returned = await example();
    if (returned !== undefined) troubles.push(`left its way: it returned ${JSON.stringify(returned)}`);
  } catch (error) {
    troubles.push(error?.stack ?? String(error));
  }
  disconnectAll();
  // What has no handler, or warns, is told in the next turn.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  process.send({ ended: index, troubles });
}
