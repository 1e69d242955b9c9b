import { Redis } from 'ioredis'
import { StoreUnavailableError } from '#model'

/** Where the shared Redis is. */
export interface RedisConnection {
  readonly host: string
  readonly port: number
  readonly db?: number
  /** an ACL user; without one the password is that of the default user */
  readonly username?: string
  readonly password?: string
  /** TLS, verified; `ca` in PEM where the system's roots do not know the server */
  readonly tls?: { readonly ca?: string; readonly servername?: string }
  /** ms until a connection counts as failed; default 5 s */
  readonly connectTimeoutMs?: number
  /** ms until an unanswered command counts as failed, and its connection as dead; default 8 s */
  readonly commandTimeoutMs?: number
  /** ms between two signs of life asked of a connection that may be idle; default 3 s */
  readonly heartbeatMs?: number
}

/** Where a connection says nothing of it: two of them, one after the other, would leave people without an answer for too long. */
export const COMMAND_TIMEOUT_MS = 8_000

export type { Redis }
/** A Redis command with its arguments. */
export type Command = [name: string, ...args: (string | number)[]]

/**
 * A connection that comes back by itself and never queues: while it is down a command fails at once. A connection that
 * answers nothing for `commandTimeoutMs` is dead, though nobody closed it (its peer's node died, a NAT entry was dropped): it is
 * destroyed and opened anew. Idle ones, subscribers among them, are asked for a sign of life every `heartbeatMs`.
 * It is not open yet: `await redis.connect()` for the first try.
 */
export function redisClient(connection: RedisConnection, onTrouble: (reason: string) => void): Redis {
  const {
    host,
    port,
    db = 0,
    username,
    password,
    tls,
    connectTimeoutMs = 5_000,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
    heartbeatMs = 3_000,
  } = connection
  const redis = new Redis({
    host,
    port,
    db,
    ...(username !== undefined && { username }),
    ...(password !== undefined && password !== '' && { password }),
    ...(tls && { tls: { ...tls } }),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // Its own would be a promise that nobody watches: whoever subscribes does so whenever the connection is ready.
    autoResubscribe: false,
    retryStrategy: (attempt) =>
      Math.round(Math.min(2_000, 50 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2)),
  })
  redis.on('error', (error) => {
    const reason = reasonOf(error)
    if (reason !== NO_CONNECTION) troubles.set(redis, reason)
    onTrouble(reason)
  })
  redis.on('ready', () => troubles.delete(redis))
  redis.on('close', () => onTrouble(NO_CONNECTION))
  keepAsking(redis, heartbeatMs)
  endSilence(redis, commandTimeoutMs)
  return redis
}

/** Why a connection does not come about, until it does: commands learn only that there is none. */
const troubles = new WeakMap<Redis, string>()

/** Asks for a sign of life while the connection stands. What becomes of the answer is the socket's own affair. */
function keepAsking(redis: Redis, everyMs: number): void {
  let timer: NodeJS.Timeout | undefined
  const stop = () => clearInterval(timer)
  redis.on('ready', () => {
    stop()
    timer = setInterval(() => void redis.ping().catch(() => undefined), everyMs).unref()
  })
  redis.on('close', stop)
  redis.on('end', stop)
}

/** So many looks make up the time after which a silent connection counts as dead. */
const LOOKS = 8

/**
 * Ends a connection that has left commands without a byte for `mostMs`, which fails them. Counted in looks, not by the clock as the
 * driver's own limits are: a process that stood still has answers to read before it may call the other side silent.
 */
function endSilence(redis: Redis, mostMs: number): void {
  let timer: NodeJS.Timeout | undefined
  const stop = () => clearInterval(timer)
  redis.on('connect', () => {
    stop()
    const { stream } = redis
    let [read, silent] = [stream.bytesRead, 0]
    timer = setInterval(() => {
      const isSilent = redis.commandQueue.length > 0 && stream.bytesRead === read
      read = stream.bytesRead
      silent = isSilent ? silent + 1 : 0
      if (silent >= LOOKS) stream.destroy(new Error('Socket timeout'))
    }, mostMs / LOOKS).unref()
  })
  redis.on('close', stop)
  redis.on('end', stop)
}

// The driver finds a command by its method's name.
const lowerCased = ([name, ...args]: Command) => [name.toLowerCase(), ...args]

/** Runs the commands in one transaction. @throws StoreUnavailableError unless every one of them was taken */
export async function transaction(redis: Redis, commands: readonly Command[]): Promise<unknown[]> {
  const results = await guardedTransaction(redis, commands)
  if (!results) throw new StoreUnavailableError('Redis', 'the transaction was given up by the server')
  return results
}

/** As `transaction`; undefined where a watched key moved, and nothing was written. */
export async function guardedTransaction(redis: Redis, commands: readonly Command[]): Promise<unknown[] | undefined> {
  try {
    const results = await redis.multi(commands.map(lowerCased)).exec()
    return results?.map(([error, value]) => {
      if (error) throw error
      return value
    })
  } catch (error) {
    throw redisUnavailable(error, redis)
  }
}

/** Runs the commands one after the other in few round trips. @throws StoreUnavailableError if one of them fails */
export async function pipelined(redis: Redis, commands: readonly Command[]): Promise<unknown[]> {
  try {
    const results = await redis.pipeline(commands.map(lowerCased)).exec()
    return (results ?? []).map(([error, value]) => {
      if (error) throw error
      return value
    })
  } catch (error) {
    throw redisUnavailable(error, redis)
  }
}

/** The reason where nothing more is known: an earlier, closer one says more. */
export const NO_CONNECTION = 'there is no connection'

/**
 * What the driver threw, in our words. Its own errors carry the arguments of commands, a password among them: left out.
 * @param redis whose command it was, which may know why there is no connection
 */
export function redisUnavailable(error: unknown, redis?: Redis): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const reason = reasonOf(error)
  const trouble = reason === NO_CONNECTION && redis ? troubles.get(redis) : undefined
  return new StoreUnavailableError('Redis', trouble ?? reason)
}

function reasonOf(error: unknown): string {
  // A transaction given up: the first command that was refused says why.
  const [first] = (error as { previousErrors?: readonly Error[] } | null)?.previousErrors ?? []
  const reason = first?.message ?? (error instanceof Error ? error.message : String(error))
  // Several addresses that all refused have no message of their own.
  if (reason === '' || UNCONNECTED.test(reason)) return NO_CONNECTION
  if (/^(Command timed out|Socket timeout)/.test(reason))
    return 'it does not answer; look whether it runs and is not stopped'
  const [, code = ''] = SYSTEM_ERROR.exec(reason) ?? []
  if (code !== '') return `${UNREACHED[code] ?? 'there is no way to it'} (${code})`
  for (const [said, words] of REFUSALS) if (said.test(reason)) return words
  return reason
}

/** It is there, and does not let this process in. */
const CREDENTIALS = 'check REDIS_USERNAME and REDIS_PASSWORD'
const REFUSALS: readonly (readonly [said: RegExp, words: string])[] = [
  [/WRONGPASS|invalid password/, `it refuses this password (WRONGPASS); ${CREDENTIALS}`],
  [/NOAUTH/, `it asks for a password (NOAUTH); ${CREDENTIALS}`],
  [/NOPERM/, 'its user may not do this (NOPERM); check its ACL and REDIS_USERNAME'],
]

/** `connect ECONNREFUSED 10.0.0.7:6379`: whoever is told that Redis is away is not told where it is. */
const SYSTEM_ERROR = /^(?:connect|getaddrinfo|read|write) (E[A-Z_]+)\b/
const UNREACHED: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections; look whether it runs',
  ENOTFOUND: 'its name is not known; check REDIS_HOST',
  EAI_AGAIN: 'its name cannot be looked up now',
  ETIMEDOUT: 'it does not answer; look whether it runs and is not stopped',
  ECONNRESET: 'it broke the connection off',
  EPIPE: 'it broke the connection off',
}

/** What the driver says of commands that found no connection; its own settings are of no use to people. */
const UNCONNECTED = /^(Connection is closed\.$|Stream isn't writeable|Reached the max retries per request)/

/** Every key of this pattern, page by page. The pattern's variable parts go through `escapeGlob` first. */
export async function* scanKeys(redis: Redis, pattern: string): AsyncGenerator<string[]> {
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1000).catch((error: unknown) => {
      throw redisUnavailable(error, redis)
    })
    cursor = next
    if (keys.length > 0) yield keys
  } while (cursor !== '0')
}

/** The text as itself inside a pattern of SCAN. */
export const escapeGlob = (text: string): string => text.replace(/[*?[\]\\^-]/g, '\\$&')

/** Closes without waiting for a server that does not answer. */
export async function closeRedis(redis: Redis): Promise<void> {
  // Between two tries there is no socket whose end could be awaited.
  const hasSocket = ['connecting', 'connect', 'ready'].includes(redis.status)
  const ended = new Promise<void>((resolve) => redis.once('end', () => resolve()))
  redis.disconnect()
  if (hasSocket && (redis.status as string) !== 'end') await ended
}
