import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import { SignInOffError, UnsafeConfigurationError } from './errors.ts'
import { trustedProxy } from './proxy.ts'
import { localRevocations } from './revocations.ts'
import type { Identified, Identity, IdentityConfig, IdentityOptions } from './types.ts'

/**
 * Checks the configuration as a whole and opens every way in it.
 * @throws UnsafeConfigurationError for what would let in somebody it should not
 */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { config, clock } = options
  const standing = standingPrincipal(config)
  const proxy = config.proxy && trustedProxy(config.proxy, clock)
  const revocations = options.revocations ?? localRevocations(clock)

  const identify = async (request: IncomingMessage): Promise<Identified | null> => {
    const fromProxy = proxy?.read(request) ?? 'no-proxy'
    if (fromProxy === 'refused') return null
    if (typeof fromProxy === 'object') return { principal: fromProxy, byCookie: true }
    return standing ? { principal: standing, byCookie: true } : null
  }

  return {
    identify,
    methods: () => [],
    begin: async () => {
      throw new SignInOffError('an identity provider')
    },
    callback: async () => {
      throw new SignInOffError('an identity provider')
    },
    password: async () => {
      throw new SignInOffError('password')
    },
    signOut: async () => ({
      status: 200,
      cookies: [],
      ...(config.proxy?.signOutUrl && { redirect: config.proxy.signOutUrl }),
    }),
    forget: () => 0,
    viewAs: () => ({ status: 200, cookies: [] }),
    endViewAs: () => ({ status: 200, cookies: [] }),
    onEnded: (listener) => revocations.onRevoked(listener),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** Who everybody is that comes without anything: where the port itself is the wall. */
function standingPrincipal({ localAdministrator, development, ...others }: IdentityConfig): Principal | undefined {
  if (!localAdministrator && !development) return undefined
  if (localAdministrator && development)
    throw new UnsafeConfigurationError('choose one: the local administrator or the development user')
  const second = (['proxy', 'oidc', 'password'] as const).find((way) => others[way])
  if (second)
    throw new UnsafeConfigurationError(
      `whoever reaches the port is signed in already, so signing in by ${second} protects nothing: choose one of them`,
    )
  if (localAdministrator) return administrator(localAdministrator.username ?? 'local-administrator')
  // The type says so already; a configuration from outside may not.
  if (development?.environment !== 'development' || development.proxyEnabled || !development.developmentUserEnabled)
    throw new UnsafeConfigurationError('the development user needs all three of its conditions')
  return {
    username: 'dev-user',
    email: 'dev@clusterpulse.local',
    emailVerified: true,
    groups: ['developers', 'cluster-viewers'],
    isServiceAccount: false,
    method: 'development',
  }
}

const administrator = (username: string): Principal => ({
  username,
  email: '',
  groups: [],
  isServiceAccount: false,
  method: 'local-administrator',
})
