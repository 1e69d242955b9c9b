import { useSyncExternalStore } from 'react'
import type { SessionView } from './contract.ts'
import { useHub } from './live/hooks.ts'

/** Who looks; null until the hub has said so. */
export function useSession(): SessionView | null {
  const { session } = useHub()
  return useSyncExternalStore(session.subscribe, session.current)
}

/**
 * Whoever looks sees everything, so what is gone has been removed. For others it may have been taken out of sight: of that
 * nothing may stay on the page, not even while a list holds still.
 */
export const useSeesAll = (): boolean => useSession()?.user?.administrator === true

/** How the hub knows somebody, in words. */
export const methodWord: Readonly<Record<string, string>> = {
  'local-administrator': 'the local address of this hub',
  password: 'password',
  'trusted-proxy': 'the proxy before this hub',
  oidc: 'the identity provider',
  'bearer-jwt': 'a token of the identity provider',
  'token-review': 'a token of Kubernetes',
  development: 'the development setting',
}
