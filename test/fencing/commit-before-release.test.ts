import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { noPostgres, Postgres } from "../support/postgres.ts";

// A lock around a read and a write in a real PostgreSQL: it must be released after COMMIT.

const parties = new Parties();
afterAll(parties.close);

const READ = "SELECT amount FROM accounts WHERE id = 42";
const WRITE = "UPDATE accounts SET amount = $1 WHERE id = 42";

describe.skipIf(noPostgres)(`a transaction${noPostgres && `: skipped, ${noPostgres}`}`, () => {
  let postgres: Postgres;
  let clients: Client[];

  beforeAll(async () => {
    postgres = await Postgres.launch();
    clients = await Promise.all(Array.from({ length: 4 }, () => postgres.connect()));
    await clients[0]?.query("CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL)");
  });
  afterAll(() => postgres?.stop());
  beforeEach(async () => {
    await clients[0]?.query("DELETE FROM accounts");
    await clients[0]?.query("INSERT INTO accounts VALUES (42, 0)");
  });

  const amount = async (client: Client): Promise<number> => (await client.query(READ)).rows[0].amount;
  const addOne = async (client: Client) => client.query(WRITE, [(await amount(client)) + 1]);

  it("loses no update under a lock that is released after its COMMIT", async () => {
    const lock = (await parties.join()).locks.lock(freshName());
    const transaction = async (client: Client) => {
      await client.query("BEGIN");
      await addOne(client);
      await client.query("COMMIT");
    };
    const callers = clients.map(async (client) => {
      for (let i = 0; i < 10; i++) await lock.withLock(() => transaction(client));
    });
    await Promise.all(callers);
    expect(await amount(clients[0] as Client)).toBe(40);
  });

  it("loses an update under a lock that is released before its COMMIT", async () => {
    const lock = (await parties.join()).locks.lock(freshName());
    const [one, two] = clients as [Client, Client];
    for (const client of [one, two]) await client.query("BEGIN");
    await lock.withLock(() => addOne(one));
    // The lock is free, and what `one` has written is not there yet: `two` reads what was there before.
    const second = await lock.lock();
    expect(await amount(two)).toBe(0);
    await one.query("COMMIT");
    await two.query(WRITE, [0 + 1]);
    await second.unlock();
    await two.query("COMMIT");
    expect(await amount(one)).toBe(1);
  });
});
