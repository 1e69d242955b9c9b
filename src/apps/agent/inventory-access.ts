import { bearerToken, Lookups, maxTokenBytes, reviewToken, tokenKey } from '#identity'
import type { ApiAccess, Review, Verdict } from '#inventory'
import { type KubeClient, reviewAccess } from '#kube'
import { type Clock, systemClock } from '#model'
import type { Metrics } from '#runtime'

export interface InventoryAccessOptions {
  /** of the cluster, with an account that may create both reviews */
  readonly kube: Pick<KubeClient, 'request'>
  /** how long an answer counts, ms; 0: it is asked each time */
  readonly cacheTtlMs: number
  readonly metrics: Metrics
  readonly clock?: Clock
}

/** Whom the cluster itself knows by a bearer token, and allows what is asked. Each token and question is asked for once at a time. */
export function kubernetesAccess({
  kube,
  cacheTtlMs,
  metrics,
  clock = systemClock,
}: InventoryAccessOptions): ApiAccess & Disposable {
  const verdicts = new Lookups<Verdict>({ clock, ttlMs: () => cacheTtlMs })
  const counted = metrics.counter('kollect_access_cache_total', 'Questions who may read the inventory', ['result'])
  const ask = async (token: string, { resource, ...rest }: Review, signal: AbortSignal): Promise<Verdict> => {
    const who = await reviewToken(kube, token, { signal })
    if (!who) return 'unauthenticated'
    const subject = { user: who.username, groups: who.groups, ...(who.extra && { extra: who.extra }) }
    const isAllowed = await reviewAccess(kube, subject, { group: 'kollect.dev', resource, ...rest }, signal)
    return isAllowed ? 'allowed' : 'forbidden'
  }
  return {
    async judge(request, review) {
      const token = bearerToken(request)
      if (!token || token.length > maxTokenBytes) return 'unauthenticated'
      const { verb, resource, namespace = '', name = '' } = review
      let isHit = true
      const { value } = await verdicts.get(`${tokenKey(token)} ${verb} ${resource} ${namespace}/${name}`, (signal) => {
        isHit = false
        return ask(token, review, signal)
      })
      counted.inc({ result: isHit ? 'hit' : 'miss' })
      return value
    },
    [Symbol.dispose]: () => verdicts.close(),
  }
}
