import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Semantics } from '#access'
import type { AuditConfig } from '#audit'
import type { BearerConfig, ClaimNames, IdentityConfig, OidcConfig, ProxyConfig } from '#identity'
import { isRange as isDialRange } from '#outbound'
import type { ConfigReader } from '#runtime'
import { optional } from './config-push.ts'

/** Who may sign in how, who sees all, and what is recorded. */
export interface AccessConfig {
  readonly identity: IdentityConfig
  readonly semantics: Semantics
  readonly administrators: { readonly users: readonly string[]; readonly groups: readonly string[] }
  readonly audit: AuditConfig
  /** the port for people speaks TLS itself */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly clientCaPem?: string }
  /** tokens are reviewed, or groups read, by the API server of the hub */
  readonly needsHub: boolean
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Addresses and ranges, checked. */
export function outboundAllow(read: ConfigReader): readonly string[] {
  const ranges = read.list('OUTBOUND_ALLOW', {
    meaning:
      'addresses or CIDR ranges that the hub may connect to for members, registries, identity providers and NATS although they are link-local, of a metadata service or unspecified; none by default',
  })
  const wrong = ranges.filter((range) => !isDialRange(range))
  for (const range of wrong)
    read.fault(`OUTBOUND_ALLOW names ${JSON.stringify(range)}, which is neither an address nor a CIDR range`)
  return ranges.filter((range) => !wrong.includes(range))
}

const withAllowed = <T extends object>(config: T | undefined, more: { readonly outboundAllow: readonly string[] }) =>
  config && more.outboundAllow.length > 0 ? { ...config, ...more } : config

/** The settings of signing in. @param host where the page is served */
export function access(read: ConfigReader, host: string): AccessConfig {
  const environment = read.text('ENVIRONMENT', {
    default: 'production',
    oneOf: ['production', 'development'],
    meaning: 'development allows the development user',
  })
  const proxyEnabled = read.flag('OAUTH_PROXY_ENABLED', {
    default: true,
    meaning: 'identity headers of a trusted proxy are believed',
  })
  const developmentUserEnabled = read.flag('ENABLE_DEV_AUTH', {
    default: false,
    meaning: 'third condition of the development user, beside ENVIRONMENT=development and OAUTH_PROXY_ENABLED=false',
  })
  const tls = serverTls(read)
  const proxy = proxyOf(read)
  const clientCaPem = proxy?.clientCa?.pem
  if (clientCaPem !== undefined && !tls)
    read.fault('TRUSTED_PROXY_CA_FILE needs a server that speaks TLS itself: give API_TLS_CERT and API_TLS_KEY')
  const publicUrl = read.optionalText('PUBLIC_URL', {
    meaning:
      'address people reach the page under, such as https://pulse.example.com; with https cookies are for https alone; an identity provider sends people back to /api/v1/auth/callback there',
  })
  if (publicUrl !== undefined) requireWebAddress(read, 'PUBLIC_URL', publicUrl)
  const allowed = { outboundAllow: outboundAllow(read) }
  const oidc = withAllowed(oidcOf(read, publicUrl), allowed)
  const bearer = withAllowed(bearerOf(read), allowed)
  const password = passwordOf(read)
  const tokenReview = read.flag('TOKEN_REVIEW', {
    default: false,
    meaning: 'bearer tokens are shown to the API server of the hub (TokenReview)',
  })
  const audiences = read.list('TOKEN_REVIEW_AUDIENCES', { meaning: 'audiences a reviewed token must be for' })
  const openshiftGroups = read.flag('OPENSHIFT_GROUPS', {
    default: false,
    meaning: 'Users and Groups of OpenShift give canonical names and memberships',
  })
  const groupTtlMs = read.duration('GROUP_CACHE_TTL', {
    default: '60s',
    min: '1s',
    raise: true,
    meaning: 'lifetime of looked up groups',
  })
  const known =
    (proxyEnabled && proxy !== undefined) ||
    oidc !== undefined ||
    bearer !== undefined ||
    password !== undefined ||
    tokenReview
  const development = environment === 'development' && !proxyEnabled && developmentUserEnabled
  if (!isLoopback(host)) {
    if (development && !known)
      read.fault(`API_HOST is ${host}: the development user is for loopback only; use 127.0.0.1`)
    else if (!known)
      read.fault(
        `API_HOST is ${host}, which others can reach, and no sign-in method is configured: bind to 127.0.0.1, or configure one: TRUSTED_PROXIES or TRUSTED_PROXY_SECRET (a proxy that signs people in), OIDC_ISSUER, JWT_ISSUER, TOKEN_REVIEW, LOCAL_ADMIN_PASSWORD`,
      )
  }
  const semantics = read.text('RBAC_SEMANTICS', {
    default: 'strict',
    oneOf: ['strict', 'original'],
    meaning: 'original answers as the original did, quirks included: for the time of a migration',
  }) as Semantics
  const identity: IdentityConfig = {
    ...(!known && !development && { localAdministrator: {} }),
    ...(!known &&
      development && {
        development: { environment: 'development', proxyEnabled: false, developmentUserEnabled: true },
      }),
    ...(proxyEnabled && optional('proxy', proxy)),
    ...optional('oidc', oidc),
    ...(bearer && { bearer: [bearer] }),
    ...(tokenReview && { tokenReview: { ...(audiences.length > 0 && { audiences }) } }),
    ...optional('password', password),
    ...optional('publicUrl', publicUrl),
    ...(openshiftGroups && { openshiftGroups: { cacheTtlMs: groupTtlMs, asOriginal: semantics === 'original' } }),
    session: session(read),
  }
  return {
    identity,
    semantics,
    administrators: {
      users: read.list('ADMIN_USERS', { meaning: 'users who see the whole fleet and administrate access' }),
      groups: read.list('ADMIN_GROUPS', {
        meaning: 'groups whose members see the whole fleet and administrate access',
      }),
    },
    audit: audit(read),
    ...(tls && { tls: { ...tls, ...optional('clientCaPem', clientCaPem) } }),
    needsHub: tokenReview || openshiftGroups,
  }
}

function proxyOf(read: ConfigReader): ProxyConfig | undefined {
  const trustedPeers = read.list('TRUSTED_PROXIES', {
    meaning: 'addresses or CIDR ranges of the proxies whose identity headers are believed',
  })
  for (const range of trustedPeers) {
    if (!isRange(range))
      read.fault(`TRUSTED_PROXIES names ${JSON.stringify(range)}, which is neither an address nor a CIDR range`)
  }
  const secret = read.secret('TRUSTED_PROXY_SECRET', {
    meaning: 'shared secret a trusted proxy sends in X-ClusterPulse-Proxy-Secret',
  })
  if (secret !== undefined && secret.length < 16) read.fault('TRUSTED_PROXY_SECRET needs at least 16 characters')
  const pem = fileText(read, 'TRUSTED_PROXY_CA_FILE', 'PEM file of the CA whose client certificate the proxy shows')
  const names = read.list('TRUSTED_PROXY_NAMES', { meaning: 'names one of which that certificate must carry' })
  const signOutUrl = read.optionalText('OAUTH_SIGN_OUT_URL', { meaning: "the proxy's sign-out page" })
  const config: ProxyConfig = {
    userHeader: read.text('OAUTH_HEADER_USER', { default: 'X-Forwarded-User', meaning: 'header with the user name' }),
    emailHeader: read.text('OAUTH_HEADER_EMAIL', {
      default: 'X-Forwarded-Email',
      meaning: 'header with the email address',
    }),
    groupsHeader: read.text('OAUTH_HEADER_GROUPS', {
      default: 'X-Forwarded-Groups',
      meaning: 'header with a comma list of groups',
    }),
    trustedPeers,
    ...(secret !== undefined && { sharedSecret: { header: 'X-ClusterPulse-Proxy-Secret', value: secret } }),
    ...(pem !== undefined && { clientCa: { pem, ...(names.length > 0 && { names }) } }),
    ...optional('signOutUrl', signOutUrl),
  }
  return trustedPeers.length > 0 || secret !== undefined || pem !== undefined ? config : undefined
}

function oidcOf(read: ConfigReader, publicUrl: string | undefined): OidcConfig | undefined {
  const issuer = read.optionalText('OIDC_ISSUER', { meaning: 'address of the identity provider people sign in with' })
  const clientId = read.text('OIDC_CLIENT_ID', { default: 'clusterpulse', meaning: 'our name at the provider' })
  const clientSecret = read.secret('OIDC_CLIENT_SECRET', {
    meaning: 'our secret there; without it a public client with PKCE alone',
  })
  const scopes = read.list('OIDC_SCOPES', {
    default: ['openid', 'profile', 'email', 'groups'],
    meaning: 'what is asked for',
  })
  const ca = fileText(read, 'OIDC_CA_FILE', 'PEM file of the CA of the provider')
  const claims = claimNames(read, 'OIDC')
  if (issuer === undefined) return undefined
  requireWebAddress(read, 'OIDC_ISSUER', issuer)
  if (publicUrl === undefined) {
    read.fault('OIDC_ISSUER needs PUBLIC_URL, the address people reach this page under')
    return undefined
  }
  return {
    issuer,
    clientId,
    publicUrl,
    scopes,
    ...optional('clientSecret', clientSecret),
    ...optional('ca', ca),
    ...claims,
  }
}

function bearerOf(read: ConfigReader): BearerConfig | undefined {
  const issuer = read.optionalText('JWT_ISSUER', { meaning: 'issuer of bearer tokens (JWT) that programs show' })
  const audience = read.text('JWT_AUDIENCE', { default: 'clusterpulse', meaning: 'audience those tokens must be for' })
  const jwksUri = read.optionalText('JWT_JWKS_URI', {
    meaning: "where the issuer's keys are; default: as its discovery document says",
  })
  const ca = fileText(read, 'JWT_CA_FILE', 'PEM file of the CA of the issuer')
  const claims = claimNames(read, 'JWT')
  if (issuer === undefined) return undefined
  requireWebAddress(read, 'JWT_ISSUER', issuer)
  if (jwksUri !== undefined) requireWebAddress(read, 'JWT_JWKS_URI', jwksUri)
  return { issuer, audience, ...optional('jwksUri', jwksUri), ...optional('ca', ca), ...claims }
}

const claimNames = (read: ConfigReader, who: 'OIDC' | 'JWT'): ClaimNames => ({
  ...optional(
    'username',
    read.optionalText(`${who}_USERNAME_CLAIM`, {
      meaning: 'claim with the user name; default: preferred_username, then email, then sub',
    }),
  ),
  ...optional(
    'groups',
    read.optionalText(`${who}_GROUPS_CLAIM`, { meaning: 'claim with the groups; default: groups' }),
  ),
  ...optional(
    'prefix',
    read.optionalText(`${who}_PREFIX`, { meaning: 'put before user names and groups, as in the policies' }),
  ),
})

function passwordOf(read: ConfigReader): IdentityConfig['password'] {
  const username = read.text('LOCAL_ADMIN_USER', { default: 'admin', meaning: 'name of the local administrator' })
  const secret = read.secret('LOCAL_ADMIN_PASSWORD', {
    meaning:
      'password of the local administrator; with it people sign in on the page, without it none is asked on loopback',
  })
  if (secret === undefined) return undefined
  if (secret.length < 12) read.fault('LOCAL_ADMIN_PASSWORD needs at least 12 characters')
  return { username, secret }
}

function session(read: ConfigReader): NonNullable<IdentityConfig['session']> {
  const secret = read.secret('SESSION_SECRET', {
    meaning: 'at least 32 characters, the same for all replicas; without it sessions end with the process',
  })
  if (secret !== undefined && secret.length < 32) read.fault('SESSION_SECRET needs at least 32 characters')
  return {
    ...optional('secret', secret),
    lifetimeMs: read.duration('SESSION_LIFETIME', {
      default: '12h',
      min: '1m',
      meaning: 'how long a sign-in lasts at most',
    }),
    idleMs: read.duration('SESSION_IDLE', {
      default: '1h',
      min: '1m',
      meaning: 'a sign-in without a request for this long ends',
    }),
  }
}

/** What is recorded, and where. */
export function audit(read: ConfigReader): AuditConfig {
  const level = read.text('AUDIT_LEVEL', {
    default: 'denials',
    oneOf: ['off', 'denials', 'all'],
    meaning: 'what is recorded: denials and sign-ins, or every access as well',
  }) as AuditConfig['level']
  const path = read.optionalText('AUDIT_FILE', {
    meaning: 'hash-chained file of the audit trail; verify with `clusterpulse audit verify`',
  })
  const maxBytes = read.integer('AUDIT_FILE_MAX_BYTES', {
    default: 64 * 2 ** 20,
    min: 65_536,
    meaning: 'above this the file is renamed and the chain goes on in a new one',
  })
  const keepFiles = read.integer('AUDIT_FILE_KEEP', {
    default: 32,
    min: 1,
    meaning: 'full files kept beside the one being written; the oldest are removed',
  })
  const key = read.secret('AUDIT_KEY', {
    meaning:
      'with it the chain and its head are keyed: nobody without the key can write one that verifies, or cut lines off its end',
  })
  const stream = read.optionalText('AUDIT_REDIS_STREAM', {
    meaning: 'key of a capped Redis stream of the same entries (roles api and manager)',
  })
  return {
    level,
    ...(path !== undefined && {
      file: { path, maxBytes, keepFiles, ...(key !== undefined && { key: Buffer.from(key) }) },
    }),
    ...(stream !== undefined && { stream: { key: stream } }),
  }
}

function serverTls(read: ConfigReader): { readonly certFile: string; readonly keyFile: string } | undefined {
  const certFile = read.optionalText('API_TLS_CERT', {
    meaning: 'PEM file of the certificate of the page and the API; with it they speak TLS',
  })
  const keyFile = read.optionalText('API_TLS_KEY', { meaning: 'PEM file of its key' })
  if (certFile === undefined && keyFile === undefined) return undefined
  for (const [name, file] of [
    ['API_TLS_CERT', certFile],
    ['API_TLS_KEY', keyFile],
  ] as const) {
    if (file === undefined) read.fault(`${name} is missing: certificate and key go together`)
    else if (!existsSync(file)) read.fault(`${name} names ${file}, which does not exist`)
  }
  return certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined
}

/** The text of a file that a setting names; a fault where there is none. */
export function fileText(read: ConfigReader, name: string, meaning: string): string | undefined {
  const file = read.optionalText(name, { meaning })
  if (file === undefined) return undefined
  if (existsSync(file)) return readFileSync(file, 'utf8')
  read.fault(`${name} names ${file}, which does not exist`)
  return undefined
}

function requireWebAddress(read: ConfigReader, name: string, text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url &&
    (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''))))
  )
    return
  read.fault(`${name} is ${JSON.stringify(text)}; it must be an https address (http on loopback only)`)
}

function isRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}
