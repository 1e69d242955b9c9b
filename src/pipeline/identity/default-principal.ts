import type { Principal } from '#access'
import { UnsafeConfigurationError } from './errors.ts'
import type { IdentityConfig } from './types.ts'

const WAYS = ['proxy', 'oidc', 'password'] as const
const SETTINGS = { proxy: 'TRUSTED_PROXIES', oidc: 'OIDC_ISSUER', password: 'LOCAL_ADMIN_PASSWORD' } as const

/**
 * Who everybody is that comes without anything: where the port itself is the wall.
 * @throws UnsafeConfigurationError where that would make another way meaningless, or lacks one of its conditions
 */
export function defaultPrincipalOf({
  localAdministrator,
  development,
  ...others
}: IdentityConfig): Principal | undefined {
  if (!localAdministrator && !development) return undefined
  if (localAdministrator && development)
    throw new UnsafeConfigurationError('choose one: the local administrator, or the development user (ENABLE_DEV_AUTH)')
  const second = WAYS.find((way) => others[way])
  if (second)
    throw new UnsafeConfigurationError(
      `whoever reaches the port is signed in already, so signing in by ${second} (${SETTINGS[second]}) protects nothing: choose one of them`,
    )
  if (localAdministrator) return administrator(localAdministrator.username ?? 'local-administrator')
  // The type says so already; a configuration from outside may not.
  if (development?.environment !== 'development' || development.proxyEnabled || !development.developmentUserEnabled)
    throw new UnsafeConfigurationError(
      'the development user needs ENVIRONMENT=development, OAUTH_PROXY_ENABLED=false and ENABLE_DEV_AUTH=true',
    )
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
