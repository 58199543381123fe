import { describeLock } from "../contract/describe-lock.ts";
import { Masters } from "../support/topologies/masters.ts";

const TRAITS = { tokens: true, queues: false, isQuorum: true };

describeLock("lock", TRAITS, { name: "5 masters", launch: () => Masters.launch(5) });
describeLock("lock", TRAITS, {
  name: "3 masters, ioredis 5, key prefix",
  launch: () => Masters.launch(3, { driver: "ioredis 5", keyPrefix: "app:" }),
});
describeLock("lock", TRAITS, {
  name: "3 masters, RESP2",
  launch: () => Masters.launch(3, { driver: "ioredis 6, RESP2" }),
});
