import { describe, expect, it, onTestFinished } from 'vitest'
import { OutboundGuard } from '#outbound'
import { silentLogger } from '#runtime'
import {
  openSink,
  type Sink,
  type SinkContext,
  SinkError,
  type SinkObject,
  SinkPool,
  type SinkPoolOptions,
} from './index.ts'

const context: SinkContext = {
  guard: new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: true }),
  writer: 'agent',
  directory: '/nonexistent',
  logger: silentLogger,
  semantics: 'strict',
  now: Date.now,
}

const anObject = (uid = 'u1', password = 'first', table = 'inventory'): SinkObject => ({
  family: 'database',
  uid,
  declaration: {
    namespace: 'team-a',
    name: 'warehouse',
    cluster: 'west',
    credentials: { dsn: Buffer.from(password) },
    spec: { type: 'postgres', postgres: { databaseRef: { name: 'warehouse' }, table } },
  },
})

/** A pool over sinks that only count. */
function aPool(options: Partial<SinkPoolOptions> = {}) {
  const seen = { opened: 0, closed: 0, now: 0 }
  const sink = (): Sink => ({
    family: 'database',
    probe: async () => ({ verified: true, message: '', warnings: [] }),
    deliver: async () => Promise.reject(new Error('not asked here')),
    remove: async () => {},
    preview: () => ({ provisioningMode: 'ensure' }),
    [Symbol.asyncDispose]: async () => void seen.closed++,
  })
  const pool = new SinkPool({
    context,
    now: () => seen.now,
    graceMs: 20,
    open: async () => {
      seen.opened++
      return sink()
    },
    ...options,
  })
  onTestFinished(() => pool[Symbol.asyncDispose]())
  const use = (call: () => Promise<unknown> = async () => 'fine', object = anObject()) =>
    pool.use(object, call, new AbortController().signal).catch((error: Error) => error)
  return { pool, seen, use }
}

const failing = async () => Promise.reject(new SinkError('transient', 'the server is away'))
const forever = () => new Promise<never>(() => undefined)

describe('a pool of sinks', () => {
  it('opens a sink once, and keeps it for the next call', async () => {
    const { use, seen } = aPool()
    await Promise.all([use(), use()])
    await use()
    expect(seen).toMatchObject({ opened: 1, closed: 0 })
  })

  it.each([
    ['its spec', anObject('u1', 'first', 'other')],
    ['its password', anObject('u1', 'second')],
  ])('opens it anew when %s changes, and closes the old one after its calls', async (_, changed) => {
    const { use, seen, pool } = aPool()
    let end: () => void = () => undefined
    const running = use(() => new Promise<void>((resolve) => (end = resolve)))
    await use(undefined, changed)
    expect(seen).toMatchObject({ opened: 2, closed: 0 })
    end()
    await running
    await expect.poll(() => seen.closed).toBe(1)
    expect(pool.size).toBe(1)
  })

  it('closes what was not used for 48 hours, and what is no more', async () => {
    const { use, seen, pool } = aPool()
    await use()
    await use(undefined, anObject('u2'))
    seen.now = 47 * 3_600_000
    await use(undefined, anObject('u2'))
    seen.now = 48 * 3_600_000
    pool.closeUnused()
    await expect.poll(() => seen.closed).toBe(1)
    await pool.forget('u2')
    expect(seen.closed).toBe(2)
    expect(pool.size).toBe(0)
  })

  it('leaves a sink alone for 30 seconds after five failures in a row, then tries once', async () => {
    const { use, seen } = aPool()
    for (let n = 0; n < 5; n++) await use(failing)
    let asked = 0
    const asking = async () => void asked++
    expect(await use(asking)).toMatchObject({ code: 'sink_transient', message: expect.stringContaining('is away') })
    expect(asked).toBe(0)
    seen.now = 30_000
    expect(await use(failing)).toMatchObject({ message: 'the server is away' })
    await use(asking)
    expect(asked).toBe(0)
    seen.now = 60_000
    await use(asking)
    await use(asking)
    expect(asked).toBe(2)
  })

  it('takes a refusal for a sign of life, and a change of the sink for a new beginning', async () => {
    const { use } = aPool()
    for (let n = 0; n < 10; n++) await use(async () => Promise.reject(new SinkError('forbidden', 'no')))
    expect(await use()).toBe('fine')
    for (let n = 0; n < 5; n++) await use(failing)
    expect(await use()).toBeInstanceOf(SinkError)
    expect(await use(undefined, anObject('u1', 'second'))).toBe('fine')
  })

  it('lets one sink in trouble cost another nothing', async () => {
    const { use, pool } = aPool({ parallelCalls: 1 })
    for (let n = 0; n < 5; n++) await use(failing)
    const hung = use(forever, anObject('u3'))
    expect(await use(undefined, anObject('u2'))).toBe('fine')
    await pool[Symbol.asyncDispose]()
    expect(await hung).toMatchObject({ message: 'the sink is closed' })
  })

  it('ends a call at its deadline, also one that does not listen, whose sink is replaced', async () => {
    const { use, seen } = aPool({ callTimeoutMs: 30, parallelCalls: 1 })
    const hung = use(forever)
    expect(await use()).toMatchObject({ code: 'sink_transient', message: 'the sink did not answer within 0.03 s' })
    expect(await hung).toMatchObject({ code: 'sink_transient' })
    expect(await use()).toBe('fine')
    expect(seen).toMatchObject({ opened: 2, closed: 1 })
  })

  it('runs so many calls to one sink at a time', async () => {
    const { use } = aPool({ parallelCalls: 2 })
    let running = 0
    let most = 0
    const call = async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running--
    }
    await Promise.all(Array.from({ length: 10 }, () => use(call)))
    expect(most).toBe(2)
  })

  it('tries to open it again after that failed', async () => {
    let attempts = 0
    const { use } = aPool({
      open: async () => {
        attempts++
        return Promise.reject(new SinkError('terminal', 'no such thing'))
      },
    })
    expect(await use()).toMatchObject({ message: 'no such thing' })
    await use()
    expect(attempts).toBe(2)
  })

  it('ends a call with its signal', async () => {
    const { pool } = aPool()
    const stop = new AbortController()
    const call = pool.use(
      anObject(),
      (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      stop.signal,
    )
    stop.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })
})

it('names the types there are, where one is not built', async () => {
  const { declaration } = anObject() as Extract<SinkObject, { family: 'database' }>
  const mongodb = { ...declaration, spec: { ...declaration.spec, type: 'mongodb' as const } }
  await expect(openSink('database', mongodb, context)).rejects.toMatchObject({
    code: 'sink_terminal',
    message: expect.stringContaining('"mongodb"'),
  })
})
