/**
 * The connection to a shared Redis: it comes back by itself and never queues, and what it throws is said in our words,
 * without the arguments of commands. Keys and documents are the affair of those who store them.
 */
export { RedisMarks, type RedisMarksOptions } from './marks.ts'
export {
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
export { digestOf, MISSING, sealFault, sealScripts, sealText } from './seal.ts'
