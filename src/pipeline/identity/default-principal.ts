import type { Principal } from '#access'
import { UnsafeConfigurationError } from './errors.ts'
import type { IdentityConfig } from './types.ts'

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
