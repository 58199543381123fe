import { describeLock } from "../../contract/describe-lock.ts";
import { memory } from "../../contract/memory.ts";

describeLock("fairLock", memory);
