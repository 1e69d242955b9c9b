import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { Client, type Dispatcher, Pool, ProxyAgent } from 'undici'
import type { Clock } from '#model'
import type { OutboundGuard } from '#outbound'
import { CONNECT_TIMEOUT_MS, landingConnector } from './connector.ts'
import type { Credential } from './credentials.ts'
import { secureContextFor } from './tls.ts'
import type { ClusterAccess } from './types.ts'

/** Longer than the usual round of 30 s, so that rounds do not pay for new handshakes; shorter than servers keep idle ones. */
const KEEP_ALIVE_MS = 45_000
/** Further connections of one client serve a slow moment; measured, each costs about 150 KB here and its share there. */
const BRIEF_MS = 5_000
/** How long calls wait behind one that does not end before they get a further connection, at least and at most. */
const PATIENCE_MS = 500
const MAX_PATIENCE_MS = 5_000
/** Slower than so many times what half of all calls take. */
const SLOW_FACTOR = 4
const STEP = 1.05

/** Connections with one client certificate. */
export interface Lines {
  readonly cert: string | undefined
  readonly requests: RequestLines
  /** one per watch: these stay busy, and must not keep requests waiting */
  readonly streams: Dispatcher
}

export interface LinesOptions {
  readonly access: ClusterAccess
  readonly origin: string
  readonly certificate: Credential['certificate']
  readonly connections: number
  readonly keptConnections: number
  readonly clock: Clock
  /** which addresses are dialed; absent: any, as for an access of our own */
  readonly outbound?: OutboundGuard | undefined
}

/** @throws KubeError `invalid` where CA, certificate or key cannot be used. */
export function openLines({ access, origin, certificate, clock, outbound, ...limits }: LinesOptions): Lines {
  const { connections, keptConnections } = limits
  checkHosts(origin, access, outbound)
  const names = outbound ? { lookup: outbound.lookup } : {}
  const secureContext = origin.startsWith('https:') ? secureContextFor(access, certificate) : undefined
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    ...names,
    ...(secureContext ? { secureContext, rejectUnauthorized: access.verifyTls } : {}),
    ...(access.tlsServerName ? { servername: access.tlsServerName } : {}),
  }
  const landing = secureContext && landingOf(secureContext, access, outbound)
  const dispatcher = (limit: number | null, keepAliveMs: number): Dispatcher => {
    const common = { keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs, pipelining: 1 }
    if (access.proxyUrl !== undefined) {
      const requestTls = { ...connect, servername: access.tlsServerName ?? serverNameOf(origin) }
      const bound = limit === null ? {} : { connections: limit }
      return new ProxyAgent({ ...common, uri: access.proxyUrl, requestTls, proxyTls: names, ...bound })
    }
    // A stream may be paused, which needs a connection with buffers of its own.
    const direct = limit !== null && landing ? landing : connect
    const options = { ...common, connect: direct }
    // A pool has room for 2048 requests that wait, 16 KB for each cluster, and nothing waits for one connection: see RequestLines.
    return limit === 1 ? new Client(origin, options) : new Pool(origin, { ...options, connections: limit })
  }
  return {
    cert: certificate?.cert,
    requests: new RequestLines({
      kept: dispatcher(keptConnections, KEEP_ALIVE_MS),
      keptConnections,
      openMore: (limit) => dispatcher(limit, BRIEF_MS),
      moreConnections: Math.max(0, connections - keptConnections),
      clock,
    }),
    streams: dispatcher(null, KEEP_ALIVE_MS),
  }
}

export function closeLines({ requests, streams }: Lines): void {
  // Nobody waits for these; an error in closing them concerns nobody either.
  for (const one of [requests, streams]) one.close().catch(() => undefined)
}

/** Hosts that are addresses: nobody looks them up. @throws AddressRefusedError */
function checkHosts(origin: string, { proxyUrl }: ClusterAccess, outbound: OutboundGuard | undefined): void {
  for (const url of [origin, ...(proxyUrl !== undefined && URL.canParse(proxyUrl) ? [proxyUrl] : [])])
    outbound?.check(new URL(url).hostname)
}

function landingOf(secureContext: SecureContext, access: ClusterAccess, outbound: OutboundGuard | undefined) {
  return landingConnector({
    secureContext,
    rejectUnauthorized: access.verifyTls,
    servername: access.tlsServerName,
    timeoutMs: CONNECT_TIMEOUT_MS,
    lookup: outbound?.lookup,
  })
}

/** SNI carries names, not addresses (RFC 6066). */
function serverNameOf(origin: string): string {
  const { hostname } = new URL(origin)
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? '' : hostname
}

/**
 * What a call takes, over all clients of a process: about the median. Where most are slow, this process or its network is, and
 * further connections, each with its handshake, would make it slower still.
 */
export class CallPace {
  #medianMs = 1

  ended(tookMs: number): void {
    this.#medianMs *= tookMs > this.#medianMs ? STEP : 1 / STEP
    this.#medianMs = Math.max(1, Math.min(this.#medianMs, MAX_PATIENCE_MS))
  }

  get patienceMs(): number {
    return Math.max(PATIENCE_MS, Math.min(SLOW_FACTOR * this.#medianMs, MAX_PATIENCE_MS))
  }
}

const paceOfAll = new CallPace()

interface Waiter {
  readonly go: (line: Line) => void
  readonly giveUp: (reason: unknown) => void
}

type Line = 'kept' | 'more'

export interface RequestLinesOptions {
  readonly kept: Dispatcher
  readonly keptConnections: number
  /** called once, when patience first ends */
  readonly openMore: (connections: number) => Dispatcher
  readonly moreConnections: number
  readonly clock: Clock
  /** default: that of the process */
  readonly pace?: CallPace
}

/**
 * One connection that stays (or as many as set), and more only while calls are stuck behind a slow one: a thousand clusters then cost a
 * thousand connections, and a list that hangs still does not hold up the others.
 */
export class RequestLines {
  readonly #options: RequestLinesOptions
  readonly #waiting = new Set<Waiter>()
  #more: Dispatcher | undefined
  #keptBusy = 0
  #moreBusy = 0
  /** ends the patience that runs now; undefined: nobody waits */
  #patience: AbortController | undefined
  #drained: (() => void) | undefined

  constructor(options: RequestLinesOptions) {
    this.#options = options
  }

  /**
   * Works on a connection that is free, in the order of the callers; throws the signal's reason while waiting for one.
   * `other` opens connections that no call has used for long.
   */
  async run<T>(work: (dispatcher: Dispatcher, other: () => Dispatcher) => Promise<T>, signal: AbortSignal): Promise<T> {
    const line = this.#takeKept() ?? (await this.#wait(signal))
    const { kept, clock, pace = paceOfAll } = this.#options
    const from = clock.now()
    try {
      const answer = await work(line === 'kept' ? kept : this.#further(), () => this.#further())
      pace.ended(clock.now() - from)
      return answer
    } finally {
      this.#giveBack(line)
    }
  }

  /** Lets what runs and waits end, then closes. */
  async close(): Promise<void> {
    if (this.#isBusy) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    await Promise.all([this.#options.kept.close(), this.#more?.close()])
  }

  async destroy(): Promise<void> {
    this.#stopPatience()
    for (const waiter of this.#waiting) waiter.giveUp(new Error('the connections are closed'))
    this.#waiting.clear()
    await Promise.all([this.#options.kept.destroy(), this.#more?.destroy()])
  }

  get #isBusy(): boolean {
    return this.#keptBusy > 0 || this.#moreBusy > 0
  }

  #takeKept(): Line | undefined {
    if (this.#keptBusy >= this.#options.keptConnections) return undefined
    this.#keptBusy++
    return 'kept'
  }

  #wait(signal: AbortSignal): Promise<Line> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const leave = () => {
        signal.removeEventListener('abort', abort)
        this.#waiting.delete(waiter)
        if (this.#waiting.size === 0) this.#stopPatience()
      }
      const waiter: Waiter = {
        go(line) {
          leave()
          resolve(line)
        },
        giveUp(reason) {
          leave()
          reject(reason)
        },
      }
      const abort = () => waiter.giveUp(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.add(waiter)
      if (!this.#patience) void this.#bePatient()
    })
  }

  /** While somebody waits: lets the next in line have a further connection each time nothing ended for a while. */
  async #bePatient(): Promise<void> {
    const { moreConnections, clock, pace = paceOfAll } = this.#options
    if (moreConnections === 0) return
    const patience = new AbortController()
    this.#patience = patience
    while (!patience.signal.aborted) {
      const busy = this.#ended
      await clock.sleep(pace.patienceMs, patience.signal)
      if (patience.signal.aborted || busy !== this.#ended || this.#moreBusy >= moreConnections) continue
      const [next] = this.#waiting
      if (!next) break
      this.#moreBusy++
      next.go('more')
    }
    if (this.#patience === patience) this.#patience = undefined
  }

  /** calls that ended so far */
  #ended = 0

  #stopPatience(): void {
    this.#patience?.abort(NO_REASON)
    this.#patience = undefined
  }

  #further(): Dispatcher {
    this.#more ??= this.#options.openMore(Math.max(1, this.#options.moreConnections))
    return this.#more
  }

  #giveBack(line: Line): void {
    this.#ended++
    const [next] = this.#waiting
    if (next) next.go(line)
    else if (line === 'kept') this.#keptBusy--
    else this.#moreBusy--
    if (!this.#isBusy) this.#drained?.()
  }
}

/** Given, as one made by `abort` itself comes with a stack trace, which costs more than the rest of the call's waiting. */
const NO_REASON = 'no longer needed'
