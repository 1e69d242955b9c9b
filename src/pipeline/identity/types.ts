import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import type { KubeClient } from '#kube'
import type { Clock } from '#model'
import type { Logger, Metrics } from '#runtime'

/** Identity headers of a proxy; never believed unless the peer is known by address, by secret or by client certificate. */
export interface ProxyConfig {
  /** default X-Forwarded-User */
  readonly userHeader?: string
  /** default X-Forwarded-Email */
  readonly emailHeader?: string
  /** comma list; default X-Forwarded-Groups */
  readonly groupsHeader?: string
  /** addresses or CIDR blocks */
  readonly trustedPeers: readonly string[]
  readonly sharedSecret?: { readonly header: string; readonly value: string }
  /** the proxy shows a client certificate of this CA (PEM), optionally with one of these common names or DNS names */
  readonly clientCa?: { readonly pem: string; readonly names?: readonly string[] }
  /** the proxy vouches for email addresses; default true */
  readonly emailVerified?: boolean
  readonly signOutUrl?: string
}

/** Claims of a token, and where they are found. */
export interface ClaimNames {
  /** default preferred_username, then email, then sub */
  readonly username?: string
  /** default groups */
  readonly groups?: string
  /** put before user names and groups, as Kubernetes does; default none */
  readonly prefix?: string
}

/** Sign-in by OpenID Connect, with the claims that name people and groups. */
export interface OidcConfig extends ClaimNames {
  readonly issuer: string
  readonly clientId: string
  /** absent: a public client, PKCE alone */
  readonly clientSecret?: string
  /** as people reach us, such as https://pulse.example.com; `/api/v1/auth/callback` is added */
  readonly publicUrl: string
  /** default openid profile email groups */
  readonly scopes?: readonly string[]
  /** PEM of the issuer's CA where the system does not know it */
  readonly ca?: string
  /** addresses and ranges that may be asked although they are link-local, of a metadata service or unspecified */
  readonly outboundAllow?: readonly string[]
  /** http issuers are refused unless on loopback */
}

/** Tokens of an issuer that callers bring themselves. */
export interface BearerConfig extends ClaimNames {
  readonly issuer: string
  readonly audience: string
  /** default: from the issuer's discovery document */
  readonly jwksUri?: string
  readonly ca?: string
  /** addresses and ranges that may be asked although they are link-local, of a metadata service or unspecified */
  readonly outboundAllow?: readonly string[]
}

/** Every way to sign in; several may be on. They are tried in this order, and the first that knows the request decides. */
export interface IdentityConfig {
  /** as people reach us; decides whether cookies are for https only. Default: `oidc.publicUrl`; else what the connection says */
  readonly publicUrl?: string
  /** whoever reaches the port is the administrator: for loopback only */
  readonly localAdministrator?: { readonly username?: string }
  /** the documented development user; all three conditions are stated, so that none is met by accident */
  readonly development?: {
    readonly environment: 'development'
    readonly proxyEnabled: false
    readonly developmentUserEnabled: true
  }
  readonly proxy?: ProxyConfig
  readonly bearer?: readonly BearerConfig[]
  /** bearer tokens of the hub's own Kubernetes; `audiences` as the API server knows them */
  readonly tokenReview?: { readonly audiences?: readonly string[] }
  readonly oidc?: OidcConfig
  /** an administrator with a password; for `up` where others reach it */
  readonly password?: { readonly username: string; readonly secret: string }
  /** read Users and Groups of OpenShift for canonical names and memberships */
  readonly openshiftGroups?: {
    readonly cacheTtlMs?: number
    /** names and memberships as the original takes them: of the first name that has any, and of nobody else. Default no */
    readonly asOriginal?: boolean
  }
  readonly session?: {
    /** 32 bytes or more; shared by replicas. Absent: random, sessions end with the process */
    readonly secret?: string
    /** default 12 h */
    readonly lifetimeMs?: number
    /** without a request for this long it ends; default 1 h */
    readonly idleMs?: number
  }
}

/** What identities are decided from. */
export interface IdentityOptions {
  readonly config: IdentityConfig
  /** of the hub; needed for tokenReview and openshiftGroups */
  readonly kube?: KubeClient
  /** shared by replicas, so that a sign-out counts everywhere; default in this process */
  readonly revocations?: RevocationStore
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
}

/** Sessions that ended before their time; entries may be forgotten after `until`. */
export interface RevocationStore {
  revoke(id: string, until: number): Promise<void>
  /** @throws where it cannot be asked: the request fails with 503 */
  isRevoked(id: string): Promise<boolean>
  /** called with ids revoked anywhere: open streams of that session end */
  onRevoked(listener: (id: string) => void): () => void
}

/** The little that a shared store must do to carry sign-outs between replicas, such as Redis: SET with PX, EXISTS, PUBLISH, SUBSCRIBE. */
export interface SharedMarks {
  /** remembers the key for this long, ms */
  set(key: string, ttlMs: number): Promise<void>
  has(key: string): Promise<boolean>
  publish(text: string): Promise<void>
  /** called with what any replica published, also this one */
  subscribe(listener: (text: string) => void): () => void
}

/** Who asks, and how it was proved. */
export interface Identified {
  /** with `actor` set, the one looked through: its `method` never makes it an administrator */
  readonly principal: Principal
  /** who really asks, while an administrator looks through another's eyes: whether they still may is asked every time */
  readonly actor?: Principal
  /** the session or token this stands on: when it ends, open streams end. Absent for headers */
  readonly session?: { readonly id: string; readonly expiresAt: number }
  /**
   * The browser proves it by itself, without the page's doing (a cookie, ours or the proxy's, or mere access to the port):
   * state-changing routes ask for more (CSRF). false for bearer tokens alone.
   */
  readonly byCookie: boolean
  /** `Set-Cookie` values for the answer: the session goes on, as it is in use */
  readonly renewal?: readonly string[]
}

/** A redirect or an answer that sets cookies. */
export interface SignInAnswer {
  readonly status: number
  readonly location?: string
  readonly cookies: readonly string[]
  readonly body?: unknown
  /** who signed in, for the audit */
  readonly principal?: Principal
}

/** Decides who sends a request, by headers, sessions or tokens. */
export interface Identity extends AsyncDisposable {
  /**
   * Who sends this request.
   * @returns null: nobody we know (401)
   * @throws FleetError `identity_unavailable` (503) where it cannot be found out; `token_refused` (401) with a reason for the log
   */
  identify(request: IncomingMessage): Promise<Identified | null>
  /** ways a person may choose on the sign-in page */
  methods(): readonly { readonly method: 'oidc' | 'password'; readonly title: string }[]
  /** Begins OIDC with PKCE: a redirect to the provider with state and nonce in a short-lived cookie. */
  begin(returnTo: string, request: IncomingMessage): Promise<SignInAnswer>
  /** The provider sent the person back. @throws FleetError `sign_in_failed` with what to do */
  callback(url: URL, request: IncomingMessage): Promise<SignInAnswer>
  /** By name and password; throttled per name and per address. @throws FleetError `sign_in_failed` | `sign_in_throttled` */
  password(name: string, password: string, request: IncomingMessage): Promise<SignInAnswer>
  /** Ends the session everywhere. */
  signOut(request: IncomingMessage): Promise<SignInAnswer & { readonly redirect?: string }>
  /** Forgets what is cached of groups and tokens of this principal. @returns how many entries */
  forget(principal: Principal): number
  /** An administrator looks through another's eyes; the cookie says so until it ends (15 min). */
  viewAs(
    actor: Principal,
    as: {
      readonly username: string
      readonly email?: string
      readonly groups: readonly string[]
      readonly isServiceAccount?: boolean
    },
    request?: IncomingMessage,
  ): SignInAnswer
  endViewAs(request?: IncomingMessage): SignInAnswer
  /** Ids of sessions that ended: streams that stand on them end. */
  onEnded(listener: (sessionId: string) => void): () => void
}
