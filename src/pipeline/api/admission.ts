import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access, Principal } from '#access'
import {
  authCacheClear,
  authCallback,
  authLogin,
  authLogout,
  authPassword,
  authStatus,
  endViewAs,
  getSession,
  openStream,
  openStreamSocket,
  routes,
} from '#http'
import type { Identified, Identity } from '#identity'
import { FleetError, invariant } from '#model'
import { type Cors, cameByTls, requireIntent, requireSameSite } from './gate.ts'
import { RefusedError, unauthenticated } from './problem.ts'
import type { RateLimiter } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** what the sign-in stands on; null: on nothing that ends */
    session: { readonly id: string; readonly expiresAt: number } | null
    /** the administrator who looks through the eyes of `principal`; null: everyone else */
    actor: Principal | null
  }
}

interface AdmissionParts {
  readonly identity: Identity
  readonly access: Access
  readonly limiter: RateLimiter
  readonly cors: Cors
  /** people reach us by https */
  readonly publicHttps: boolean
  /** @throws RefusedError where there is no state to answer from */
  readonly requireState: () => void
}

/** Public routes that answer differently to those we know. */
const personal: ReadonlySet<string> = new Set([getSession.url, authStatus.url])
const signIn: ReadonlySet<string> = new Set([authLogin.url, authCallback.url, authPassword.url])
/** What those who look through another's eyes may still change: that they do. */
const waysBack: ReadonlySet<string> = new Set([endViewAs.url, authLogout.url])
/** Pages of others than ours post these, too, and know nothing of our header. */
const fromOthers: ReadonlySet<string> = new Set([authLogout.url, authCacheClear.url])
/** A question may be too long for an address: forms ask, and change nothing. */
const askedByForm: ReadonlySet<string> = new Set(routes.filter(({ schema }) => schema.form).map(({ url }) => url))

/**
 * What every request passes before its route runs.
 *
 *   who asks → how much may they ask → did they mean to → may they → is there a state → what do they see
 *
 * Whoever cannot be told from a stranger is one; what cannot be found out fails the request.
 */
export class Admission {
  readonly #parts: AdmissionParts

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /** @throws FleetError for everything that refuses the request */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { access, cors, requireState } = this.#parts
    const { url = '', config } = request.routeOptions
    const rule = config.access
    const changes = request.method === 'POST' && !askedByForm.has(url)
    if (rule === 'public' && personal.has(url)) return this.#recognise(request, reply)
    if (rule === 'public' && signIn.has(url)) this.#parts.limiter.take(addressOf(request))
    if (rule === 'public' && changes) {
      requireSameSite(request, cors)
      this.#requireIntent(request)
    }
    if (rule === undefined || rule === 'public') return
    const identified = await this.identify(request, reply)
    if (!identified || !request.principal) throw unauthenticated()
    if (request.method === 'POST') requireSameSite(request, cors)
    if (changes && identified.byCookie) this.#requireIntent(request, fromOthers.has(url))
    if (changes && request.actor && !waysBack.has(url))
      throw new RefusedError(
        'viewing_as',
        `looking through the eyes of another is for reading: go back to your own first`,
      )
    if (rule === 'authenticated') return
    if (url !== openStream.url && url !== openStreamSocket.url) requireState()
    request.accessView = await access.viewOf(request.principal)
    if (rule === 'administrator' && !request.accessView.administrator)
      throw new RefusedError('administrators_only', 'this is for administrators')
  }

  #requireIntent(request: FastifyRequest, browserSuffices = false): void {
    const { cors, publicHttps } = this.#parts
    const { headers, principal } = request
    requireIntent({ headers, principal, byTls: cameByTls(request, publicHttps) }, cors, browserSuffices)
  }

  /** For routes that answer everybody: a token that does not count makes a stranger. */
  async #recognise(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      await this.identify(request, reply)
    } catch (error) {
      if (!(error instanceof FleetError) || error.code !== 'token_refused') throw error
    }
  }

  /** Fills in who asks. @throws FleetError `identity_unavailable` | `token_refused` | `too_many_requests` */
  async identify(request: FastifyRequest, reply: FastifyReply): Promise<Identified | null> {
    const { identity, access, limiter } = this.#parts
    let identified: Identified | null
    try {
      identified = await identity.identify(request.raw)
    } catch (error) {
      limiter.take(addressOf(request))
      throw error
    }
    if (!identified) {
      limiter.take(addressOf(request))
      return null
    }
    const { principal, actor, session = null, renewal = [] } = identified
    invariant(principal.actor === undefined || actor, 'whoever looks through other eyes is known by their own')
    request.session = session
    // A cookie says that an administrator looks through another's eyes; whether they still are one is asked every time.
    request.actor = actor && access.isAdministrator(actor) ? actor : null
    request.principal = actor && !request.actor ? actor : principal
    if (renewal.length > 0) reply.header('set-cookie', [...renewal])
    const asks = request.actor ?? request.principal
    if (asks.method !== 'local-administrator') limiter.take(`user ${asks.username}`)
    return identified
  }
}

const addressOf = ({ ip }: FastifyRequest): string => `address ${ip}`
