import { describeLock } from "../../contract/describe-lock.ts";
import { memory } from "./topology.ts";

describeLock("redissonLock", memory);
