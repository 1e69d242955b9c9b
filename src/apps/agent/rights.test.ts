import { describe, expect, it } from 'vitest'
import { KubeError } from '#kube'
import type { AgentRights } from '#model'
import { heldRights } from './rights.ts'

type Attempt = Readonly<Record<string, string>>

/** A cluster that grants what the predicate says; what it was asked. */
function aCluster(grants: (attempt: Attempt) => boolean) {
  const asked: Attempt[] = []
  const request = async (_method: string, _path: string, { body }: { body?: unknown } = {}) => {
    const { spec } = body as { spec: { resourceAttributes: Attempt } }
    asked.push(spec.resourceAttributes)
    return { status: { allowed: grants(spec.resourceAttributes) } }
  }
  return { asked, kube: { request } as never }
}

const signal = () => new AbortController().signal
const shop: AgentRights = { kind: 'namespaced', namespaces: ['shop', 'till'] }

describe('the rights an agent has', () => {
  it('are asked about nowhere where it changes nothing', async () => {
    const { asked, kube } = aCluster(() => false)
    expect(await heldRights(kube, { kind: 'observe' }, { as: 'itself', signal: signal() })).toEqual({
      rights: { kind: 'observe' },
    })
    expect(asked).toEqual([])
  })

  it.each([
    ['everything', { kind: 'full' }, 'itself', () => true],
    ['two namespaces', shop, 'itself', ({ namespace }) => ['shop', 'till'].includes(namespace ?? '')],
    [
      'an account that has them',
      shop,
      'executor',
      ({ verb, name }) => verb === 'impersonate' && name === 'clusterpulse-executor',
    ],
  ] as const satisfies readonly (readonly [
    string,
    AgentRights,
    'itself' | 'executor',
    (attempt: Attempt) => boolean,
  ])[])('are those that were chosen where the cluster grants them: %s', async (_, wanted, as, grants) => {
    const { kube } = aCluster(grants)
    expect(await heldRights(kube, wanted, { as, signal: signal() })).toEqual({ rights: wanted })
  })

  it('are told as they are where more is left of before, with the command that takes it away', async () => {
    const { kube } = aCluster(({ verb, resource }) => verb === 'impersonate' || resource === '*')
    const held = await heldRights(kube, shop, { as: 'executor', signal: signal() })
    expect(held.rights).toEqual({ kind: 'full' })
    expect(held.excess).toMatch(/still grants full: .*`kubectl delete clusterrolebinding clusterpulse-executor`/)
  })

  it('are told as they are where the kubeconfig is of somebody who may do everything, though less was chosen', async () => {
    const { kube } = aCluster(() => true)
    const held = await heldRights(kube, shop, { as: 'itself', signal: signal() })
    expect(held.rights).toEqual({ kind: 'full' })
    expect(held.excess).toMatch(/^namespaced:shop,till was chosen, .*this kubeconfig may do everything: .*told full; /)
  })

  it('are none where the cluster grants less, and what is missing is named', async () => {
    const { kube } = aCluster(({ namespace }) => namespace === 'shop')
    const held = await heldRights(kube, shop, { as: 'itself', signal: signal() })
    expect(held.rights).toEqual({ kind: 'observe' })
    expect(held.fault).toMatch(
      /does not grant namespaced:shop,till: not "create deployments in till"; .*--rights observe/,
    )
  })

  it('are none where the cluster cannot be asked, and it is said that this is not known', async () => {
    const kube = { request: () => Promise.reject(new KubeError('timeout', 'did not answer')) } as never
    const held = await heldRights(kube, { kind: 'full' }, { as: 'executor', signal: signal() })
    expect(held.rights).toEqual({ kind: 'observe' })
    expect(held.fault).toMatch(/is not known: .*did not answer/)
  })
})
