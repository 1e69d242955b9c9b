import { describe, expect, it } from 'vitest'
import { STREAM_SIGNER } from '#certificates'
import type { KubeClient } from '#kube'
import { type MemberDecision, systemClock } from '#model'
import { apis } from '../registration/testing/hub.ts'
import { DecisionRights } from './decision-rights.ts'

const RBAC = 'rbac.authorization.k8s.io'
const CSR = 'certificates.k8s.io'
const OCM = 'cluster.open-cluster-management.io'
type Rule = Readonly<Record<'apiGroups' | 'resources' | 'verbs', readonly string[]>> & {
  readonly resourceNames?: readonly string[]
}
const rule = (group: string, resource: string, verbs: readonly string[], names: readonly string[] = []): Rule => ({
  ...{ apiGroups: [group], resources: [resource], verbs },
  ...(names.length > 0 && { resourceNames: names }),
})

/** What `clusterpulse accept` needs, of one cluster or of all. */
const acceptance = (names: readonly string[] = []): readonly Rule[] => [
  rule(OCM, 'managedclusters', ['get', 'patch'], names),
  rule('register.open-cluster-management.io', 'managedclusters/accept', ['update'], names),
  rule(CSR, 'certificatesigningrequests', ['list']),
  rule(CSR, 'certificatesigningrequests/approval', ['update']),
]
const signing = (signer: string): Rule => rule(CSR, 'signers', ['approve'], [signer])

async function grant(kube: KubeClient, name: string, rules: readonly Rule[], subjects: readonly object[]) {
  const at = `/apis/${RBAC}/v1`
  const metadata = { name }
  await kube.request('POST', `${at}/clusterroles`, {
    body: { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules },
  })
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name }
  await kube.request('POST', `${at}/clusterrolebindings`, {
    body: { apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata, roleRef, subjects },
  })
}
const subject = (kind: 'User' | 'Group', name: string) => ({ apiGroup: RBAC, kind, name })

describe.each(apis)('rights to decide about members, at $title', ({ open, skip }) => {
  const person = (username: string, ...groups: string[]) => ({ username, groups })
  const rightsAt = (hub: KubeClient, signers: readonly string[] = [STREAM_SIGNER]) =>
    new DecisionRights({ hub, namespace: 'clusterpulse', requests: { signersOf: () => signers }, clock: systemClock })

  it.skipIf(skip)('are those of the command, for a person, a group and one cluster; nothing less does', async () => {
    await using api = await open()
    const { kube } = api
    const rights = rightsAt(kube)
    await grant(
      kube,
      'accept-all',
      [...acceptance(), signing(STREAM_SIGNER)],
      [subject('User', 'ann'), subject('Group', 'ops')],
    )
    await grant(kube, 'accept-east', [...acceptance(['east']), signing(STREAM_SIGNER)], [subject('User', 'eve')])
    await grant(kube, 'not-quite', [rule(OCM, 'managedclusters', ['*'])], [subject('User', 'kim')])
    const lacked = async (who: ReturnType<typeof person>, decision: MemberDecision, cluster?: string) =>
      rights.lacked(who, decision, cluster)
    // A real API server follows bindings with a little delay.
    await expect.poll(() => rightsAt(kube).lacked(person('kim'), 'detach', 'east')).toEqual([])
    expect(await lacked(person('ann'), 'accept', 'east')).toEqual([])
    expect(await lacked(person('ann'), 'deny')).toEqual([])
    expect(await lacked(person('bob', 'ops'), 'accept', 'east')).toEqual([])
    expect(await lacked(person('ann'), 'detach', 'east')).toEqual([`delete managedclusters.${OCM} east`])
    expect(await lacked(person('ann'), 'revoke', 'east')).toEqual([
      'list secrets in clusterpulse',
      'delete secrets in clusterpulse',
    ])
    expect(await lacked(person('eve'), 'accept', 'east')).toEqual([])
    expect(await lacked(person('eve'), 'accept', 'west')).toHaveLength(3)
    expect(await lacked(person('eve'), 'accept')).toHaveLength(3)
    expect(await lacked(person('kim'), 'accept', 'east')).toContain(
      'update managedclusters.register.open-cluster-management.io/accept east',
    )
    // Another signer than the one that may be approved.
    const other = rightsAt(kube, ['kubernetes.io/kube-apiserver-client'])
    expect(await other.lacked(person('ann'), 'accept', 'east')).toEqual([
      `approve signers.${CSR} kubernetes.io/kube-apiserver-client`,
    ])
    expect(await lacked(person('nobody'), 'detach', 'east')).toHaveLength(2)
    expect(await lacked(person('root', 'system:masters'), 'revoke', 'east')).toEqual([])
  })
})

describe('what rights are asked of the hub’s API', () => {
  const who = { username: 'ann', groups: ['ops'], extra: { 'scopes.authorization.openshift.io': ['user:info'] } }
  function anApi(answer: () => Promise<unknown>) {
    const asked: unknown[] = []
    const clock = { at: 0, now: () => clock.at, sleep: systemClock.sleep }
    const hub = {
      request: (_method: string, _path: string, { body }: { body: { spec: unknown } }) => {
        asked.push(body.spec)
        return answer()
      },
    } as unknown as KubeClient // all that is asked of it
    const rights = new DecisionRights({ hub, namespace: 'n', requests: { signersOf: () => [] }, clock })
    return { asked, clock, rights }
  }
  const allowed = () => Promise.resolve({ status: { allowed: true } })

  it('is asked once in five seconds, with the scopes of the token', async () => {
    const { asked, clock, rights } = anApi(allowed)
    await Promise.all([rights.lacked(who, 'detach', 'east'), rights.lacked(who, 'detach', 'east')])
    expect(asked).toHaveLength(2)
    expect(asked[0]).toMatchObject({ user: 'ann', groups: ['ops'], extra: who.extra })
    clock.at = 4999
    await rights.lacked(who, 'detach', 'east')
    expect(asked).toHaveLength(2)
    clock.at = 5000
    await rights.lacked(who, 'detach', 'east')
    expect(asked).toHaveLength(4)
    // Without the scopes it is somebody else.
    await rights.lacked({ username: 'ann', groups: ['ops'] }, 'detach', 'east')
    expect(asked).toHaveLength(6)
  })

  it('is unknown where it does not answer, which is not remembered, and bounded at once', async () => {
    let isAway = true
    const { rights } = anApi(() => (isAway ? Promise.reject(new Error('ECONNREFUSED')) : allowed()))
    await expect(rights.lacked(who, 'detach', 'east')).rejects.toMatchObject({
      code: 'rights_unknown',
      retryable: true,
    })
    isAway = false
    expect(await rights.lacked(who, 'detach', 'east')).toEqual([])
    const slow = anApi(() => new Promise(() => undefined))
    for (let place = 0; place < 32; place++) void slow.rights.lacked({ ...who, username: `u${place}` }, 'detach', 'x')
    await expect(slow.rights.lacked(who, 'detach', 'x')).rejects.toMatchObject({ code: 'rights_unknown' })
    expect(slow.asked).toHaveLength(64)
  })
})
