import { createHash, X509Certificate } from 'node:crypto'
import { type Clock, FleetError, systemClock } from '#model'
import { Listeners, type Logger, silentLogger } from '#runtime'
import {
  BACKDATE_MS,
  issueClientCertificate,
  newAuthorityPair,
  type PairText,
  readAuthorityPair,
  type SigningPair,
} from './certificates.ts'
import {
  type AuthorityDocument,
  type AuthorityEntry,
  type Revocation,
  readDocument,
  writeDocument,
} from './document.ts'
import { AuthorityChangedError, AuthorityUnusableError } from './errors.ts'
import type { RecognisedRequest } from './judge.ts'
import { type MemberName, memberUser } from './member.ts'
import { type MemberCertificate, readMemberCertificate } from './member-certificate.ts'
import type { AuthorityStore, Sealer } from './store.ts'

const DAY_MS = 86_400_000
const YEAR_MS = 365 * DAY_MS

/** How a CA is kept, and how long what it makes lives. */
export interface AuthorityOptions {
  readonly store: AuthorityStore
  /** protects the key where it is kept; absent: it is kept as it is, as private as the store is */
  readonly sealer?: Sealer
  /** a CA from elsewhere, PEM: it signs in place of one of our own, and its key is kept nowhere */
  readonly given?: PairText
  /** of a CA made here, ms; default ten years */
  readonly authorityLifeMs?: number
  /** of a member's certificate, ms, and the longest that can be asked for; default 30 days */
  readonly certificateLifeMs?: number
  /** after its end a certificate still proves who asks for the next one, ms; default 30 days */
  readonly renewalGraceMs?: number
  /** until a new CA signs beside a former one, ms; default 0. Who verifies members, and other processes, need that long to hear of it */
  readonly activeAfterMs?: number
  readonly clock?: Clock
  readonly logger?: Logger
}

/** One CA whose certificates count. */
export interface Root {
  /** SHA-256 of the certificate, hex */
  readonly id: string
  readonly pem: string
  /** `next` signs from `activeFromMs` on; `former` signs no more and is trusted until all it signed has ended */
  readonly state: 'next' | 'active' | 'former'
  readonly activeFromMs: number
  /** no certificate of it ends later, ms since the Unix epoch */
  readonly signedUntilMs: number
  readonly endsMs: number
}

/** A certificate that was made just now. */
export interface IssuedCertificate {
  readonly pem: string
  /** hex */
  readonly serial: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** of the CA that signed it */
  readonly rootId: string
}

/** What the API of Kubernetes takes for the shortest life, ms. */
const SHORTEST_LIFE_MS = 10 * 60_000
/** Below this the begin of a life is not taken from its end. */
const SHORT_LIFE_MS = 8 * 3_600_000
/** CAs that sign no more and are remembered. */
const MAX_FORMER = 16
/** Where others write as well. */
const MAX_TRIES = 5

interface Held {
  readonly document: AuthorityDocument
  readonly version: string | undefined
}

/**
 * The hub's CA, which signs its members and is trusted for nothing else. It may be several: while one takes over from another, both
 * are trusted. What it signs was judged before; what it has revoked does not count any more, whatever its end.
 */
export class Authority {
  readonly #options: AuthorityOptions & { readonly clock: Clock; readonly logger: Logger }
  readonly #pairs = new Map<string, Promise<SigningPair>>()
  readonly #changed = new Listeners()
  readonly #certificates = new Map<string, X509Certificate>()
  /** of the CA whose key is given and not kept */
  readonly #givenId: string | undefined
  #held: Held
  #fault: string | undefined
  #renewing: Promise<unknown> | undefined
  #queue: Promise<unknown> = Promise.resolve()

  private constructor(options: AuthorityOptions, held: Held) {
    this.#options = { ...options, clock: options.clock ?? systemClock, logger: options.logger ?? silentLogger }
    this.#givenId = options.given && idOf(options.given.cert)
    this.#held = held
  }

  /**
   * Reads the CA, or makes one where there was none.
   * @throws AuthorityUnusableError where it is damaged, sealed by a key that is not here, or what is given is no CA
   */
  static async open(options: AuthorityOptions): Promise<Authority> {
    const kept = await options.store.read()
    const document = kept ? readDocument(kept.text) : { version: 1 as const, authorities: [], revocations: [] }
    const authority = new Authority(options, { document, version: kept?.version })
    await authority.#settle()
    return authority
  }

  /** Every CA whose certificates count now, oldest first. */
  roots(): readonly Root[] {
    const { authorities } = this.#held.document
    const activeAt = this.#activeAt(authorities)
    const nowMs = this.#now()
    return authorities.flatMap(({ id, certificate, activeFromMs, signedUntilMs }, at) => {
      const state = at < activeAt ? 'former' : at === activeAt ? 'active' : 'next'
      if (state === 'former' && signedUntilMs < nowMs) return []
      const endsMs = Date.parse(this.#certificateOf(certificate).validTo)
      return [{ id, pem: certificate, state, activeFromMs, signedUntilMs, endsMs }]
    })
  }

  /** The certificates of `roots`, one behind the other: what a listener trusts. */
  get pem(): string {
    return this.roots()
      .map(({ pem }) => pem)
      .join('')
  }

  /** Calls the listener whenever `roots`, what is revoked or `fault` has changed. @returns what ends it */
  onChange(listener: () => void): () => void {
    return this.#changed.add(listener)
  }

  /**
   * Signs a request that was judged and approved. The certificate says the member's name, and nothing else that the request chose but its key.
   * @throws AuthorityUnusableError where the CA has no key here, or has ended
   */
  async signClient(request: RecognisedRequest): Promise<IssuedCertificate> {
    await this.#renewAuthority()
    const entry = this.#active()
    const pair = await this.#pairOf(entry)
    const { notBeforeMs, notAfterMs } = this.#spanOf(request, pair)
    if (notAfterMs > entry.signedUntilMs) await this.#reserve(entry.id, notAfterMs)
    const { publicKey, spki } = request.request
    const issued = await issueClientCertificate(pair, {
      commonName: memberUser(request.member),
      organizations: request.organizations,
      spki,
      isRsa: publicKey.asymmetricKeyType === 'rsa',
      notBeforeMs,
      notAfterMs,
    })
    return { ...issued, notBeforeMs, notAfterMs, rootId: entry.id }
  }

  /** The life that is asked for, as far as it is allowed, from a little before now. */
  #spanOf({ member, expirationSeconds }: RecognisedRequest, { certificate }: SigningPair) {
    const usualMs = this.#options.certificateLifeMs ?? 30 * DAY_MS
    const askedMs = expirationSeconds === undefined ? usualMs : expirationSeconds * 1000
    const lifeMs = Math.max(SHORTEST_LIFE_MS, Math.min(askedMs, usualMs))
    const nowMs = Math.floor(this.#now() / 1000) * 1000
    const revokedUntilMs = Math.max(0, ...this.#revocationsOf(member).map(({ untilMs }) => untilMs))
    // Else what is signed in the second of a revocation would be revoked with what was signed before it.
    const issuedAtMs = nowMs > revokedUntilMs ? nowMs : Math.floor(revokedUntilMs / 1000) * 1000 + 1000
    const endsMs = nowMs + lifeMs - (lifeMs < SHORT_LIFE_MS ? 0 : BACKDATE_MS)
    const notAfterMs = Math.min(endsMs, certificate.notAfter.getTime())
    if (notAfterMs <= issuedAtMs)
      throw new AuthorityUnusableError(
        notAfterMs < endsMs
          ? "the hub's CA has ended: rotate it"
          : `certificates of ${member.cluster} were revoked at a time that is still to come: the clock of the hub was set back`,
      )
    return { notBeforeMs: issuedAtMs - BACKDATE_MS, notAfterMs }
  }

  /**
   * Lets a new CA take over; the former one stays trusted until all it signed has ended, or until `end`.
   * @param activeAfterMs until it signs; default: that of the options
   */
  async rotate({
    activeAfterMs = this.#options.activeAfterMs ?? 0,
  }: {
    readonly activeAfterMs?: number
  } = {}): Promise<Root> {
    if (this.#options.given)
      throw new AuthorityUnusableError("the hub's CA is given by files: give it another one to rotate it")
    const entry = await this.#newEntry(this.#now() + activeAfterMs)
    const isFirst = this.#held.document.authorities.length === 0
    await this.#change((document) => ({ ...document, authorities: [...document.authorities, entry] }))
    this.#options.logger.info(
      { id: entry.id },
      isFirst
        ? 'the CA that signs members is made: none is kept here'
        : "a new CA takes over from the hub's former one, which stays trusted",
    )
    const root = this.roots().find(({ id }) => id === entry.id)
    if (!root) throw new AuthorityChangedError()
    return root
  }

  /**
   * Ends the trust in a CA at once: what it signed does not count any more.
   * @throws AuthorityUnusableError for the one that signs, and for one that is not there
   */
  async end(id: string): Promise<void> {
    const root = this.roots().find((each) => each.id === id)
    if (!root) throw new AuthorityUnusableError(`the hub has no CA ${id}`)
    if (root.state === 'active') throw new AuthorityUnusableError('the CA that signs cannot be ended: rotate it first')
    await this.#change((document) => ({
      ...document,
      authorities: document.authorities.filter((entry) => entry.id !== id),
    }))
  }

  /**
   * Makes every certificate worthless that a cluster, or one agent of it, was given up to now. What is signed later counts.
   * @param of.decidedMs of the decision it follows: one that was followed before is not followed again, so that it can be told at every start
   */
  async revoke(of: { readonly cluster: string; readonly agent?: string; readonly decidedMs?: number }): Promise<void> {
    const { cluster, agent, decidedMs } = of
    const isReplaced = (one: Revocation) => one.cluster === cluster && (agent === undefined || one.agent === agent)
    await this.#change((document) => {
      const { revocations } = document
      const isFollowed = (one: Revocation) => isReplaced(one) && one.decidedMs === decidedMs
      if (decidedMs !== undefined && revocations.some(isFollowed)) return document
      const revocation: Revocation = { ...of, untilMs: this.#now() }
      return { ...document, revocations: [...revocations.filter((one) => !isReplaced(one)), revocation] }
    })
  }

  /** What a certificate of one of our CAs says of who holds it, and whether it counts. */
  memberOf(certificate: X509Certificate): MemberCertificate {
    const { document } = this.#held
    const roots = document.authorities.map((entry) => this.#certificateOf(entry.certificate))
    return readMemberCertificate(certificate, {
      roots,
      nowMs: this.#now(),
      graceMs: this.#graceMs,
      isRevoked: (member, issuedAtMs) => this.#revocationsOf(member).some(({ untilMs }) => issuedAtMs <= untilMs),
    })
  }

  /**
   * Whether none of the CAs that are known can have signed a certificate, as where the file that kept them was lost.
   * @param of.issuer the beginning of the id of the CA that signed it; undefined: not noted, so that only one that is older than all of them is told
   * @param of.from its begin, ms since the Unix epoch
   */
  lacksIssuerOf({ issuer, from }: { readonly issuer?: string; readonly from: number }): boolean {
    const { authorities } = this.#held.document
    if (issuer !== undefined) return !authorities.some(({ id }) => id.startsWith(issuer))
    return authorities.every(({ madeMs }) => madeMs !== undefined && from + BACKDATE_MS < madeMs)
  }

  /** Whether a certificate of a trusted CA counts as a credential: the members' while they are not revoked, others not at all. */
  accepts(certificate: X509Certificate): boolean {
    return this.memberOf(certificate).kind === 'valid'
  }

  /** Reads what other processes have written. */
  async refresh(): Promise<void> {
    await this.#alone(() => this.#read())
  }

  /** Why what is kept is not what counts here, for people; undefined: it is, as far as `keep` saw. */
  get fault(): string | undefined {
    return this.#fault
  }

  /**
   * Writes again what was taken away or harmed where it is kept: all of it is here. For the one process that has the store, now and then.
   * What cannot be written is logged, and in `fault`.
   */
  async keep(): Promise<void> {
    await this.#alone(async () => {
      try {
        if (!(await this.#isKept())) {
          const { document } = this.#held
          this.#held = { document, version: await this.#options.store.mend(writeDocument(document)) }
          this.#options.logger.warn(
            {},
            'the CA that signs members was gone or harmed where it is kept: it is written again from memory',
          )
        }
        this.#say(undefined)
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        this.#say(
          `the CA that signs members is not kept any more, and cannot be written again: ${why}; it goes on from memory, and the next start would make a new one that no member is trusted by`,
        )
      }
    })
  }

  async #isKept(): Promise<boolean> {
    try {
      const kept = await this.#options.store.read()
      if (kept && kept.version !== this.#held.version) readDocument(kept.text)
      return kept !== undefined
    } catch (error) {
      if (error instanceof AuthorityUnusableError) return false
      throw error
    }
  }

  #say(fault: string | undefined): void {
    if (fault === this.#fault) return
    this.#fault = fault
    if (fault === undefined) this.#options.logger.info({}, 'the CA that signs members is kept again')
    else this.#options.logger.error({}, fault)
    this.#changed.tell()
  }

  async #read(): Promise<void> {
    const kept = await this.#options.store.read()
    if (!kept || kept.version === this.#held.version) return
    this.#hold({ document: readDocument(kept.text), version: kept.version })
  }

  get #graceMs(): number {
    return this.#options.renewalGraceMs ?? 30 * DAY_MS
  }

  #now(): number {
    return this.#options.clock.now()
  }

  #activeAt(authorities: readonly AuthorityEntry[]): number {
    const nowMs = this.#now()
    const canSign = ({ id, key }: AuthorityEntry) => key !== undefined || id === this.#givenId
    const at = authorities.findLastIndex((entry) => canSign(entry) && entry.activeFromMs <= nowMs)
    // By a clock that was set back none has begun yet: the first that can goes on.
    return at < 0 ? authorities.findIndex(canSign) : at
  }

  #active(): AuthorityEntry {
    const { authorities } = this.#held.document
    const entry = authorities[this.#activeAt(authorities)]
    if (!entry) throw new AuthorityUnusableError('the hub has no CA')
    return entry
  }

  #revocationsOf({ cluster, agent }: MemberName): Revocation[] {
    return this.#held.document.revocations.filter(
      (one) => one.cluster === cluster && (one.agent === undefined || one.agent === agent),
    )
  }

  /** What is given takes over, a missing one is made, keys in the clear are sealed. */
  async #settle(): Promise<void> {
    const { given, logger } = this.#options
    const id = this.#givenId
    if (given && id !== undefined) {
      this.#pairs.set(id, readAuthorityPair(given))
      await this.#pairs.get(id)
      const { authorities } = this.#held.document
      if (authorities.at(-1)?.id === id) return
      const known = authorities.find((entry) => entry.id === id)
      const nowMs = this.#now()
      const entry = { id, certificate: given.cert, activeFromMs: nowMs, signedUntilMs: known?.signedUntilMs ?? nowMs }
      await this.#change((document) => ({
        ...document,
        authorities: [...document.authorities.filter((each) => each.id !== id), entry],
      }))
      return
    }
    const last = this.#held.document.authorities.at(-1)
    if (!last?.key) {
      if (last)
        logger.warn({ id: last.id }, 'the CA that was given to the hub is not given any more: it makes one of its own')
      await this.rotate()
      return
    }
    await this.#pairOf(last)
    await this.#renewAuthority()
    if (this.#held.document.authorities.some((entry) => this.#isBehind(entry)))
      await this.#change(async (document) => ({
        ...document,
        authorities: await Promise.all(document.authorities.map((entry) => this.#sealed(entry))),
      }))
  }

  /** Whether the sealer in force would write its key another way. */
  #isBehind({ key }: AuthorityEntry): boolean {
    const { sealer } = this.#options
    if (!key || !sealer) return false
    return !key.sealed || sealer.isCurrent?.(Buffer.from(key.text, 'base64')) === false
  }

  async #sealed(entry: AuthorityEntry): Promise<AuthorityEntry> {
    const { key } = entry
    if (!key || !this.#isBehind(entry)) return entry
    return { ...entry, key: await this.#keyText(key.sealed ? await this.#opened(key.text) : key.text) }
  }

  async #keyText(pem: string): Promise<NonNullable<AuthorityEntry['key']>> {
    const { sealer } = this.#options
    if (!sealer) return { sealed: false, text: pem }
    return { sealed: true, text: Buffer.from(await sealer.seal(Buffer.from(pem))).toString('base64') }
  }

  /** A CA of our own gives way before certificates would have to end with it. */
  async #renewAuthority(): Promise<void> {
    const { given, certificateLifeMs = 30 * DAY_MS } = this.#options
    const newest = this.#held.document.authorities.at(-1)
    if (given || !newest) return
    const endsMs = Date.parse(this.#certificateOf(newest.certificate).validTo)
    const leftMs = endsMs - this.#now()
    // One that has ended unseen is more likely a clock that is wrong by years: that is for people to decide.
    if (leftMs >= 2 * certificateLifeMs || leftMs < 0) return
    this.#renewing ??= this.rotate().finally(() => {
      this.#renewing = undefined
    })
    await this.#renewing
  }

  async #newEntry(activeFromMs: number): Promise<AuthorityEntry> {
    const nowMs = this.#now()
    const lifeMs = this.#options.authorityLifeMs ?? 10 * YEAR_MS
    const name = `clusterpulse-members-${new Date(nowMs).toISOString().slice(0, 10)}-${randomWord()}`
    const pair = await newAuthorityPair(name, nowMs, lifeMs)
    const key = await this.#keyText(pair.key)
    return { id: idOf(pair.cert), certificate: pair.cert, key, activeFromMs, signedUntilMs: nowMs, madeMs: nowMs }
  }

  #certificateOf(pem: string): X509Certificate {
    const known = this.#certificates.get(pem) ?? new X509Certificate(pem)
    this.#certificates.set(pem, known)
    return known
  }

  #pairOf(entry: AuthorityEntry): Promise<SigningPair> {
    const known = this.#pairs.get(entry.id)
    if (known) return known
    const pair = this.#openPair(entry)
    this.#pairs.set(entry.id, pair)
    pair.catch(() => this.#pairs.delete(entry.id))
    return pair
  }

  async #openPair({ certificate, key }: AuthorityEntry): Promise<SigningPair> {
    if (!key) throw new AuthorityUnusableError("the key of the hub's CA is not here: give the hub its files")
    return readAuthorityPair({ cert: certificate, key: key.sealed ? await this.#opened(key.text) : key.text })
  }

  async #opened(text: string): Promise<string> {
    const { sealer } = this.#options
    if (!sealer)
      throw new AuthorityUnusableError("the key of the hub's CA is encrypted, and no encryption key is configured")
    try {
      return Buffer.from(await sealer.open(Buffer.from(text, 'base64'))).toString()
    } catch (error) {
      if (error instanceof FleetError) throw error // it knows which key is missing
      throw new AuthorityUnusableError("the key of the hub's CA is encrypted with another encryption key", {
        cause: error,
      })
    }
  }

  /** Written before the certificate is given out, and a day ahead, so that few certificates cause a write. */
  async #reserve(id: string, notAfterMs: number): Promise<void> {
    const isShort = (entry: AuthorityEntry) => entry.id === id && entry.signedUntilMs < notAfterMs
    await this.#change((document) => {
      const { authorities } = document
      if (!authorities.some(isShort)) return document // of many that ask at once the first has written for all
      const signedUntilMs = notAfterMs + DAY_MS
      return { ...document, authorities: authorities.map((one) => (isShort(one) ? { ...one, signedUntilMs } : one)) }
    })
  }

  /** One change after the other; again where another process was faster. */
  async #change(next: (document: AuthorityDocument) => AuthorityDocument | Promise<AuthorityDocument>): Promise<void> {
    await this.#alone(async () => {
      for (let tries = 1; ; tries++)
        try {
          const changed = await next(this.#held.document)
          if (changed === this.#held.document) return
          const document = this.#pruned(changed)
          const version = await this.#options.store.write(writeDocument(document), this.#held.version)
          this.#hold({ document, version })
          return
        } catch (error) {
          if (!(error instanceof AuthorityChangedError) || tries === MAX_TRIES) throw error
          await this.#read()
        }
    })
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => undefined) // told to the caller
    return result
  }

  /** Without what nobody asks for any more. Former CAs go by their number, not by a clock that may be wrong; their keys at once. */
  #pruned(document: AuthorityDocument): AuthorityDocument {
    const { authorities } = document
    const activeAt = this.#activeAt(authorities)
    const keptMs = (this.#options.certificateLifeMs ?? 30 * DAY_MS) + this.#graceMs + YEAR_MS
    return {
      ...document,
      authorities: authorities
        .map((entry, at) => (at < activeAt ? withoutKey(entry) : entry))
        .slice(Math.max(0, activeAt - MAX_FORMER)),
      // What follows a decision is kept with it: told of it again, it would end what was signed since.
      revocations: document.revocations.filter(
        ({ untilMs, decidedMs }) => decidedMs !== undefined || untilMs + keptMs >= this.#now(),
      ),
    }
  }

  #hold(held: Held): void {
    this.#held = held
    this.#changed.tell()
  }
}

function withoutKey({ key: _, ...entry }: AuthorityEntry): AuthorityEntry {
  return entry
}

const idOf = (pem: string): string => {
  try {
    return createHash('sha256').update(new X509Certificate(pem).raw).digest('hex')
  } catch (error) {
    throw new AuthorityUnusableError("the certificate of the hub's CA is no PEM of a certificate", { cause: error })
  }
}

const randomWord = (): string => Math.random().toString(36).slice(2, 8)
