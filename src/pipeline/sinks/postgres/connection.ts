import { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { minutes, seconds } from '#model'
import { boundReceived, containReading, type OutboundGuard } from '#outbound'
import { type DatabaseDeclaration, type SinkContext, SinkError } from '../sink.ts'
import { addressOf, type DatabaseAddress } from './address.ts'
import { sinkErrorOf } from './errors.ts'
import { Messages } from './messages.ts'

/** At most so many connections of one sink; deliveries of different inventories run side by side. */
const MAX_CONNECTIONS = 4
const CONNECT_MS = seconds(15)
/** Less than a call of the pool may take, which knows less about why. */
const TRANSACTION_MS = seconds(90)
const IDLE_MS = minutes(1)
/** of a statement, where the sink says nothing else */
const STATEMENT_MS = seconds(60)
const UNIT_MS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** One transaction, or the statements of a look. Values always go beside the statement. */
export interface Session {
  query<R extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly R[]; readonly count: number }>
}

/** Connections to the database of one sink, dialled behind the guard. */
export class Database implements AsyncDisposable {
  readonly #config: pg.PoolConfig
  readonly #statementMs: number
  readonly #transactionMs: number
  /** one after the other: without TLS is tried where a server has none and nothing asks for it */
  readonly #tls: (ConnectionOptions | false)[]
  #pool: pg.Pool | undefined
  /** what should be known of the way to it, a sentence each */
  readonly warnings: readonly string[]

  /** @throws SinkError, terminal, for a connection string that cannot be used */
  constructor(declaration: DatabaseDeclaration, { guard, logger }: SinkContext, transactionMs = TRANSACTION_MS) {
    this.#transactionMs = transactionMs
    const address = addressOf(declaration.credentials)
    const { choices, warnings } = tlsOf(address, declaration)
    this.#tls = choices
    this.warnings = warnings
    this.#statementMs = durationMs(declaration.spec.options?.statement_timeout) ?? STATEMENT_MS
    this.#config = {
      host: address.host,
      port: address.port,
      user: address.user,
      database: address.database,
      // A function: else an empty one is looked for in files of the machine.
      password: () => address.password,
      application_name: 'clusterpulse',
      max: MAX_CONNECTIONS,
      connectionTimeoutMillis: CONNECT_MS,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      stream: () => new GuardedSocket(guard),
      Client: ContainedClient,
      onError: () => logger.debug({ sink: declaration.name }, 'an idle connection to a database broke'),
    } as pg.PoolConfig
  }

  /** Statements that belong together: all of them hold, or none. @throws SinkError; the reason of the signal */
  transaction<T>(work: (session: Session) => Promise<T>, signal: AbortSignal): Promise<T> {
    const late = AbortSignal.timeout(this.#transactionMs)
    return this.session(
      async (session) => {
        await session.query('begin')
        // Locks are waited for a little shorter than statements run, so that the one is not taken for the other.
        await session.query(
          "select set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true), set_config('idle_in_transaction_session_timeout', '120s', true)",
          [`${this.#statementMs}ms`, `${Math.ceil(this.#statementMs * 0.8)}ms`],
        )
        const result = await work(session)
        await session.query('commit')
        return result
      },
      AbortSignal.any([signal, late]),
    ).catch((error) => {
      throw error === late.reason
        ? new SinkError('transient', `the transaction took longer than ${this.#transactionMs / 1000} s`, {
            cause: error,
          })
        : error
    })
  }

  /** One connection for a while. It is given up when anything fails: nothing half done is left on it. */
  async session<T>(work: (session: Session) => Promise<T>, signal: AbortSignal): Promise<T> {
    const client = await this.#connect(signal)
    let isReleased = false
    const release = (broken: boolean) => {
      if (!isReleased) client.release(broken)
      isReleased = true
    }
    const stop = () => release(true)
    signal.addEventListener('abort', stop, { once: true })
    try {
      signal.throwIfAborted()
      const result = await work(sessionOf(client))
      release(false)
      return result
    } catch (error) {
      release(true)
      signal.throwIfAborted()
      throw sinkErrorOf(error)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pool = this.#pool
    this.#pool = undefined
    await pool?.end()
  }

  async #connect(signal: AbortSignal): Promise<pg.PoolClient> {
    signal.throwIfAborted()
    this.#pool ??= this.#newPool()
    const pool = this.#pool
    try {
      const client = await connected(pool, signal)
      // A connection that breaks while nobody asks anything says so by an event.
      if (client.listenerCount('error') === 0) client.on('error', () => undefined)
      return client
    } catch (error) {
      signal.throwIfAborted()
      const hasNoTls = error instanceof Error && error.message === 'The server does not support SSL connections'
      if (!hasNoTls) throw sinkErrorOf(error)
      // Of several that come at once, one finds it first.
      if (pool === this.#pool) {
        if (this.#tls.length < 2) throw sinkErrorOf(error)
        this.#tls.shift()
        this.#pool = this.#newPool()
        await pool.end()
      }
      return this.#connect(signal)
    }
  }

  #newPool(): pg.Pool {
    const pool = new pg.Pool({ ...this.#config, ssl: this.#tls[0] ?? false })
    // What breaks while it is idle is replaced when it is needed.
    pool.on('error', () => undefined)
    return pool
  }
}

/** A connection, or the end of waiting for it: then it goes back when it comes. */
function connected(pool: pg.Pool, signal: AbortSignal): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    pool
      .connect()
      .then((client) => (signal.aborted ? client.release() : resolve(client)), reject)
      .finally(() => signal.removeEventListener('abort', stop))
  })
}

const sessionOf = (client: pg.PoolClient): Session => ({
  query: async <R extends object>(text: string, values?: readonly unknown[]) => {
    const { rows, rowCount } = await client.query<R & pg.QueryResultRow>(text, values ? [...values] : undefined)
    return { rows, count: rowCount ?? 0 }
  },
})

/** The parts of the library's classes that are not among its declared ones. */
interface Reading extends pg.Connection {
  attachListeners(stream: Socket): void
}
type ReadingConstructor = new (config: object) => Reading

/** What it reads by, in the clear and inside of TLS. */
class ContainedConnection extends (pg.Connection as unknown as ReadingConstructor) {
  override attachListeners(stream: Socket): void {
    const messages = new Messages()
    containReading(stream, (piece) => messages.fault(piece))
    super.attachListeners(stream)
  }
}

class ContainedClient extends pg.Client {
  constructor(config: pg.ClientConfig = {}) {
    const { stream, ssl, keepAlive } = config
    const connection = new ContainedConnection({ stream, ssl, keepAlive })
    // The pool hides the password from whoever copies. That the library takes a connection is not declared.
    super(Object.create(config, { connection: { value: connection } }) as pg.ClientConfig)
  }
}

/** The longest answer is the hashes of all rows of an inventory: of a quarter of a million. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20

/** Every address is judged when it is dialled. */
class GuardedSocket extends Socket {
  readonly #guard: OutboundGuard

  constructor(guard: OutboundGuard) {
    super()
    this.#guard = guard
    boundReceived(this, MAX_ANSWER_BYTES)
  }

  override connect(...args: unknown[]): this {
    const [port, host] = args
    // The library dials so; anything else would go past the guard.
    if (typeof port !== 'number' || typeof host !== 'string')
      throw new TypeError('a database is dialled by port and host')
    try {
      this.#guard.check(host)
    } catch (error) {
      process.nextTick(() => this.destroy(error as Error))
      return this
    }
    return super.connect({ port, host, lookup: this.#guard.lookup })
  }
}

function tlsOf(
  { sslMode }: DatabaseAddress,
  { spec, caBundle }: DatabaseDeclaration,
): { readonly choices: (ConnectionOptions | false)[]; readonly warnings: readonly string[] } {
  if (spec.tls?.insecureSkipVerify)
    return { choices: [{ rejectUnauthorized: false }], warnings: ['the certificate of the database is not verified'] }
  if (sslMode === 'disable') {
    if (caBundle !== undefined)
      throw new SinkError(
        'terminal',
        'the connection string turns TLS off, and spec.tls gives a CA: take one of them away',
      )
    return {
      choices: [false],
      warnings: ['the connection is not encrypted: the connection string says sslmode=disable'],
    }
  }
  const ca = caBundle === undefined ? {} : { ca: caBundle }
  if (sslMode === 'verify-full' || (caBundle !== undefined && sslMode !== 'verify-ca'))
    return { choices: [{ ...ca, rejectUnauthorized: true }], warnings: [] }
  if (sslMode === 'verify-ca')
    return { choices: [{ ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined }], warnings: [] }
  const unverified = {
    choices: [{ rejectUnauthorized: false }],
    warnings: ['the certificate of the database is not verified: say sslmode=verify-full, and give its CA in spec.tls'],
  }
  if (sslMode === 'require') return unverified
  return {
    choices: [...unverified.choices, false],
    warnings: [
      'the connection is encrypted only where the database offers it, and its certificate is not verified: say sslmode=verify-full, and give its CA in spec.tls',
    ],
  }
}

/** A time as Postgres writes it; a bare number is in milliseconds. */
function durationMs(text: string | undefined): number | undefined {
  const match = /^\s*(\d{1,9})\s*(us|ms|s|min|h|d)?\s*$/.exec(text ?? '')
  if (!match) return undefined
  return Math.min(Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? 'ms'] ?? 1)), 2 ** 31 - 1)
}
