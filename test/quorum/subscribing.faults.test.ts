import { expect, it } from "vitest";
import { Quorum } from "../../src/quorum/quorum.ts";
import { QuorumSubscriptions } from "../../src/quorum/subscriptions.ts";
import { failure } from "../contract/observe.ts";
import { linkOf } from "../support/link.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

const stage = new QuorumStage(3);

it("subscribing fails when a node that was acknowledged is lost before enough others are", async () => {
  const { nodes } = await stage.join({}, "proxies");
  const quorum = new Quorum(nodes.map(linkOf), {
    replyTimeout: 4_000,
    prefix: "",
    nodeTimeout: 400,
    restartDelay: 0,
  });
  const subscriptions = new QuorumSubscriptions(quorum, {
    isOwn: () => false,
    isWanted: () => true,
    deaf: { isDue: () => false, tell: () => {} },
  });
  const channel = quorum.keys.ofQuorum(stage.name).free;
  stage.proxy(3).refuse(true); // never there
  stage.proxy(3).cut();
  stage.proxy(2).partition("subscribers"); // its acknowledgement comes after `thaw()`
  let isHeard = false;
  subscriptions.listen(channel, () => {
    isHeard = true;
  });
  const ready = failure(subscriptions.ready(channel));
  // A message that arrives is proof that the client has read the acknowledgement before it.
  await until(async () => {
    await stage.admin(1).publish(channel, "a release");
    return isHeard;
  });
  stage.proxy(1).refuse(true);
  stage.proxy(1).cut("subscribers");
  await until(async () => (await stage.listeners(1)) === 0);
  stage.proxy(2).thaw();
  expect(String(await ready)).toContain("lost again");
  subscriptions.close();
  quorum.detach();
});
