import { describeLock } from "../../contract/describe-lock.ts";
import { memory } from "./memory.ts";

describeLock("fairLock", memory);
