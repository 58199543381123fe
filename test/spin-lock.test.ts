import { describeLock } from "./contract/describe-lock.ts";

describeLock("spinLock", { tokens: false, queues: false, messages: false });
