import { leases as builtIn, isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type Clock, FleetError, seconds, steadyClock } from '#model'
import type { Logger } from '#runtime'

/** `coordination.k8s.io/v1` Lease, as far as it is used. */
export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

const leases: Resource<Lease> = {
  group: builtIn.group,
  version: builtIn.version,
  plural: builtIn.plural,
  kind: builtIn.kind,
  namespaced: true,
  fromJson: (object) => object as Lease, // served by the API server under its own schema
}

/** The Lease that candidates hold in turn; durations in ms. */
export interface LeaderElectionOptions {
  readonly kube: KubeClient
  readonly namespace: string
  /** of the Lease */
  readonly name: string
  /** of this process: unique among the candidates */
  readonly identity: string
  readonly logger: Logger
  readonly clock?: Clock
  readonly random?: () => number
  /** how long others leave a silent leader its lease; default 15 s */
  readonly leaseMs?: number
  /** how long a leader goes on without a renewal; must be below `leaseMs`; default 10 s */
  readonly renewDeadlineMs?: number
  /** between two attempts; default 2 s */
  readonly retryMs?: number
}

/** `taken`: another holds it; `unknown`: the API server did not let us know. */
type Attempt = 'ours' | 'taken' | 'unknown'

/**
 * One leader among many candidates, by a Lease that the leader renews. A leader that cannot renew stops leading before
 * anybody else may begin, as long as clocks run equally fast (they need not show the same time).
 */
export class LeaderElection {
  readonly #options: Required<LeaderElectionOptions>
  /** what we last saw, and when by our own clock: another machine's time is never compared with ours */
  #seen: { readonly version: string; readonly at: number } | undefined
  #found: { readonly holder?: string; readonly problem?: string } = {}
  #leadsUntil = Number.NEGATIVE_INFINITY

  constructor(options: LeaderElectionOptions) {
    this.#options = {
      clock: steadyClock,
      random: Math.random,
      leaseMs: seconds(15),
      renewDeadlineMs: seconds(10),
      retryMs: seconds(2),
      ...options,
    }
  }

  /** What the last attempt found: who holds the lease, or why that is not known. */
  get seen(): { readonly holder?: string; readonly problem?: string } {
    return this.#found
  }

  /**
   * Whether it leads at this moment. A process that was stopped for a while finds out here before anything else runs that it does not
   * any more: its timers come late.
   */
  get leads(): boolean {
    return this.#options.clock.now() < this.#leadsUntil
  }

  /**
   * Campaigns for ever. While leading, `lead` runs; its signal aborts when leadership is lost, and it must end then:
   * nothing else is done before it has. Ends with the signal, giving the lease back.
   */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, retryMs, renewDeadlineMs, random, logger, identity, name } = this.#options
    while (!signal.aborted) {
      const since = clock.now()
      // An API server that hangs is asked again: it may be another one by then, and the answer too old to lead by.
      if ((await this.#within(renewDeadlineMs, signal)) !== 'ours') {
        await clock.sleep(Math.round(retryMs * (1 + 0.2 * random())), signal)
        continue
      }
      // Ours, and soon over: it is renewed before anything leads by it.
      if (clock.now() - since > renewDeadlineMs / 2) continue
      logger.info({ identity, lease: name }, 'leading')
      await this.#lead(lead, since, signal)
      if (!signal.aborted) logger.warn({ identity, lease: name }, 'lost the lease; no longer leading')
    }
  }

  async #lead(lead: (signal: AbortSignal) => Promise<void>, since: number, signal: AbortSignal): Promise<void> {
    const leading = new AbortController()
    const end = () => leading.abort()
    this.#leadsUntil = since + this.#options.renewDeadlineMs
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      await Promise.all([lead(leading.signal).finally(end), this.#renew(since, leading)])
    } finally {
      signal.removeEventListener('abort', end)
      this.#leadsUntil = Number.NEGATIVE_INFINITY
      await this.#release()
    }
  }

  /** Renews until that fails for too long, then aborts `leading`. A renewal counts from when it was begun. */
  async #renew(since: number, leading: AbortController): Promise<void> {
    const { clock, retryMs, renewDeadlineMs } = this.#options
    let renewedAt = since
    while (!leading.signal.aborted) {
      await clock.sleep(retryMs, leading.signal)
      if (leading.signal.aborted) return
      const begun = clock.now()
      const leftMs = renewedAt + renewDeadlineMs - begun
      const end = leftMs > 0 ? await this.#within(leftMs, leading.signal) : 'unknown'
      if (end === 'ours') {
        renewedAt = begun
        this.#leadsUntil = begun + renewDeadlineMs
      } else if (end === 'taken' || clock.now() - renewedAt >= renewDeadlineMs) leading.abort()
    }
  }

  /** One attempt, no longer than that. Not by AbortSignal.any: `signal` lives long and would remember every attempt. */
  async #within(ms: number, signal: AbortSignal): Promise<Attempt> {
    const attempt = new AbortController()
    const end = () => attempt.abort()
    signal.addEventListener('abort', end, { once: true })
    try {
      const late = this.#options.clock.sleep(ms, attempt.signal).then(() => {
        end()
        return 'unknown' as const
      })
      return await Promise.race([this.#try(attempt.signal), late])
    } finally {
      signal.removeEventListener('abort', end)
      end()
    }
  }

  /** Takes or renews the lease. */
  async #try(signal: AbortSignal): Promise<Attempt> {
    const { kube, namespace, name, clock, identity, logger } = this.#options
    try {
      const lease = await kube.get(leases, { namespace, name }, signal)
      const begun = clock.now()
      if (!lease) {
        await kube.create(leases, this.#claim(undefined), signal)
        return 'ours'
      }
      if (!this.#isFree(lease, begun)) {
        this.#found = { holder: lease.spec?.holderIdentity ?? '' }
        return 'taken'
      }
      // The old resourceVersion goes along: of two candidates the second gets a conflict.
      await kube.replace(leases, this.#claim(lease), signal)
      return 'ours'
    } catch (error) {
      if (signal.aborted) return 'unknown'
      const { message } = FleetError.from(error)
      // Of two candidates one loses, which is no trouble; what goes on is said once.
      const isLost = isKubeError(error, 'conflict') || isKubeError(error, 'already_exists')
      const isNews = !isLost && message !== this.#found.problem
      logger[isNews ? 'warn' : 'debug']({ identity, err: error }, 'could not take or renew the lease')
      this.#found = { problem: message }
      return 'unknown'
    }
  }

  #isFree(lease: Lease, now: number): boolean {
    const { identity, leaseMs } = this.#options
    const holder = lease.spec?.holderIdentity ?? ''
    const version = `${lease.metadata.uid}/${lease.metadata.resourceVersion}`
    if (this.#seen?.version !== version) this.#seen = { version, at: now }
    if (holder === '' || holder === identity) return true
    const patienceMs = lease.spec?.leaseDurationSeconds ? seconds(lease.spec.leaseDurationSeconds) : leaseMs
    return now - this.#seen.at > patienceMs
  }

  #claim(lease: Lease | undefined): Lease {
    const { namespace, name, identity, leaseMs, clock } = this.#options
    const now = microTime(clock.now())
    const isOurs = lease?.spec?.holderIdentity === identity
    const transitions = lease?.spec?.leaseTransitions ?? 0
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: lease?.metadata ?? { name, namespace },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.max(1, Math.round(leaseMs / 1000)),
        acquireTime: (isOurs && lease?.spec?.acquireTime) || now,
        renewTime: now,
        leaseTransitions: !lease || isOurs ? transitions : transitions + 1,
      },
    }
  }

  /** Lets the next candidate begin at once. When it cannot be done the lease simply runs out. */
  async #release(): Promise<void> {
    const { kube, namespace, name, identity, logger, clock } = this.#options
    const timer = AbortSignal.timeout(2000) // wall time on purpose: a stopping process must end
    try {
      const lease = await kube.get(leases, { namespace, name }, timer)
      if (lease?.spec?.holderIdentity !== identity) return
      const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) }
      await kube.replace(leases, { ...lease, spec }, timer)
    } catch (error) {
      logger.debug({ identity, err: error }, 'could not give the lease back; it will run out')
    }
  }
}

/** metav1.MicroTime. */
const microTime = (ms: number) => `${new Date(ms).toISOString().slice(0, -1)}000Z`
