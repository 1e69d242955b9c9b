/**
 * The connection to a shared Redis: it comes back by itself and never queues, and what it throws is said in our words,
 * without the arguments of commands. On it stand marks that processes share, and sets of documents that are taken as a whole or
 * not at all (`ReplicatedSet`). Keys and documents are the affair of those who store them.
 */
export { KeptKeys, type Question } from './kept-keys.ts'
export { RedisMarks, type RedisMarksOptions } from './marks.ts'
export {
  COMMAND_TIMEOUT_MS,
  type Command,
  closeRedis,
  escapeGlob,
  NO_CONNECTION,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  scanKeys,
  transaction,
} from './redis.ts'
export { ReplicatedSet, type ReplicatedSetOptions } from './replicated-set.ts'
export { aHash, aSet, aString, type Contents, type Value } from './set-contents.ts'
export { type SetLayout, textAt } from './set-layout.ts'
export type { Loaded, Unsealed } from './set-reader.ts'
export { sharedKey } from './shared-key.ts'
