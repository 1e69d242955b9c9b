import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ApiListener, type ApiObject, ApiServer, listenApi } from '#apiserver'
import { API_CLIENT_SIGNER, Authority, folderStore } from '#authority'
import { certificateReconcilers } from '#certificates'
import { Manager } from '#controller'
import { accept, HubJoins, JoinTokens, Members } from '#joining'
import { kinds, ocmAdmission, ocmKinds } from '#kinds'
import { createKubeClient, type OwnedKubeClient } from '#kube'
import { type ClusterName, parseClusterName, systemClock } from '#model'
import { registrationReconcilers } from '#registration'
import { silentLogger } from '#runtime'
import { aMachine } from '../../control/joining/testing/joining-hub.ts'
import { managedClusters } from '../../control/registration/objects.ts'
import { SomeFleet } from '../../control/registration/testing/fleet.ts'

const NAMESPACE = 'clusterpulse'
const HOUR_MS = 3_600_000

/** What the hub asks its own API for, by verb and resource; what a person or a machine does is not counted. */
class Counted {
  readonly #requests = new Map<string, number>()
  #all = 0

  note(method: string, path: string, status: number): void {
    this.#all++
    const [address = '', query = ''] = path.split('?')
    if (query.includes('watch=')) return
    const parts = address.split('/').slice(address.startsWith('/api/') ? 3 : 4)
    const [resource = '', , subresource] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts
    const what = `${method} ${resource}${subresource ? `/${subresource}` : ''}${status >= 400 ? ` ${status}` : ''}`
    this.#requests.set(what, (this.#requests.get(what) ?? 0) + 1)
  }

  /** Sets are counted a little later than their members come. */
  async isQuiet(): Promise<void> {
    for (let before = -1; before !== this.#all; ) {
      before = this.#all
      await systemClock.sleep(500)
    }
  }

  take(): Record<string, number> {
    const taken = Object.fromEntries([...this.#requests].sort(([a], [b]) => (a < b ? -1 : 1)))
    this.#requests.clear()
    return taken
  }
}

describe('what a join costs the hub', () => {
  const counted = new Counted()
  const stack: (() => PromiseLike<unknown>)[] = []
  let kube: OwnedKubeClient
  let person: OwnedKubeClient
  let tokens: JoinTokens
  let desk: HubJoins
  const clientOf = (local: ApiListener['answer']): OwnedKubeClient => {
    const credentials = { kind: 'token' as const, token: 'hub-token' }
    return createKubeClient({ server: 'https://127.0.0.1:1', verifyTls: true, credentials }, { local, qps: 10_000 })
  }
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'join-cost-'))
    stack.push(() => rm(directory, { recursive: true, force: true }))
    const server = await ApiServer.open({
      ...{ storage: { kind: 'memory' }, defaultRoles: true, admission: ocmAdmission },
      converters: ocmKinds.flatMap(({ converters }) => converters),
    })
    stack.push(() => server[Symbol.asyncDispose]())
    for (const kind of [...kinds, ...ocmKinds])
      await server.objects.put(kind.crd({ converts: true }) as unknown as ApiObject)
    await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
    const grants = [{ token: 'hub-token', user: 'hub', groups: ['system:masters'] }]
    const listener = await listenApi({ tokens: grants, mounts: new Map([['', server]]) })
    stack.push(() => listener[Symbol.asyncDispose]())
    kube = clientOf(async (request, signal) => {
      const answer = await listener.answer(request, signal)
      counted.note(request.method, request.path, answer.status)
      return answer
    })
    person = clientOf(listener.answer)
    stack.push(
      () => kube[Symbol.asyncDispose](),
      () => person[Symbol.asyncDispose](),
    )
    const authority = await Authority.open({ store: folderStore(directory) })
    const fleet = new SomeFleet()
    const logger = silentLogger
    const controllers = [
      ...certificateReconcilers({ hub: kube, namespace: NAMESPACE, authority, signers: [API_CLIENT_SIGNER], logger }),
      ...registrationReconcilers({ hub: kube, namespace: NAMESPACE, state: fleet, events: fleet.events, logger }),
    ]
    for (const controller of controllers) {
      const manager = new Manager({ controllers: [controller], logger })
      await manager.start()
      stack.push(() => manager.stop())
    }
    const shared = { hub: kube, clock: systemClock, logger }
    tokens = new JoinTokens({ ...shared, namespace: NAMESPACE })
    const members = new Members(shared)
    desk = new HubJoins({
      ...{ ...shared, tokens, members, record: () => Promise.resolve() },
      ...{ clientRoots: async () => authority.pem, serverRoots: () => '' },
    })
    members.start()
    desk.start()
    stack.push(
      () => desk[Symbol.asyncDispose](),
      () => members[Symbol.asyncDispose](),
    )
    while (!members.isSynced) await systemClock.sleep(5)
  })
  afterAll(async () => {
    for (const end of stack.reverse()) await end()
  })
  beforeEach(() => void counted.take())

  /** Asks, is accepted as soon as that can be decided, and gets its certificate. */
  async function joined(name: ClusterName, token?: string): Promise<void> {
    const { asked } = aMachine(name, token ?? (await tokens.issue(name, HOUR_MS)))
    let isAccepted = false
    for await (const step of desk.ask(asked, new AbortController().signal)) {
      if (step.kind === 'over') throw new Error(step.message)
      if (step.kind === 'pending' && !isAccepted) {
        isAccepted = true
        await accept({ hub: person, cluster: name })
      }
    }
  }

  /** All that is made for them is made, and said. */
  async function settled(names: readonly string[]): Promise<void> {
    await expect
      .poll(async () => {
        const all = await person.listAll(managedClusters)
        const isAccepted = (name: string) =>
          all
            .find(({ metadata }) => metadata.name === name)
            ?.status?.conditions?.some(({ type, status }) => type === 'HubAcceptedManagedCluster' && status === 'True')
        return names.every(isAccepted)
      })
      .toBe(true)
  }

  it('is one write for each thing that is said, and no list is read', async () => {
    // What is made once for all members is there from now on.
    await joined(parseClusterName('first'))
    await settled(['first'])
    // The last that is written of one without an agent: else it would be counted with the second.
    const first = { name: 'first' }
    await expect.poll(async () => (await person.get(managedClusters, first))?.spec?.taints?.length).toBe(1)
    await counted.isQuiet()
    const second = parseClusterName('second')
    const token = await tokens.issue(second, HOUR_MS)
    counted.take()
    await joined(second, token)
    await settled([second])
    const { conflicts, reads, writes } = split(counted.take())
    // Its token; nothing else is asked for, as all else is followed.
    expect(reads).toEqual({ 'GET secrets': 1 })
    expect(conflicts).toBeLessThanOrEqual(2)
    const once = [
      'POST managedclusters',
      'POST certificatesigningrequests',
      'POST namespaces',
      'POST clusterconnections',
    ]
    expect(writes).toMatchObject(Object.fromEntries(once.map((what) => [what, 1])))
    expect(writes).toMatchObject({
      'PUT secrets': 1, // spent
      'PATCH certificatesigningrequests/status': 1, // signed
      'PATCH clusterrolebindings': 1,
      'PATCH rolebindings': 2,
      'PATCH managedclusters/status': 1, // accepted
    })
    expect(writes['PATCH clusterroles']).toBeLessThanOrEqual(2) // who asks may see itself; who is accepted may more
    expect(writes['PATCH managedclusters']).toBeLessThanOrEqual(3) // finalizers, certificate with its life, taint
    expect(writes['PATCH managedclustersets/status'] ?? 0).toBeLessThanOrEqual(2)
    expect(sumOf(writes)).toBeLessThanOrEqual(18)
  })

  it('is no more for each of many that come at once', async () => {
    const names = Array.from({ length: 40 }, (_, n) => parseClusterName(`many-${n}`))
    const all = await Promise.all(names.map(async (name) => ({ name, token: await tokens.issue(name, HOUR_MS) })))
    counted.take()
    await Promise.all(all.map(({ name, token }) => joined(name, token)))
    await settled(names)
    const { conflicts, reads, writes } = split(counted.take())
    expect(reads).toEqual({ 'GET secrets': names.length })
    expect(conflicts).toBeLessThanOrEqual(names.length)
    expect(writes).toMatchObject({ 'PATCH clusterrolebindings': names.length, 'PATCH rolebindings': 2 * names.length })
    // Sets are counted together, however many come.
    const { 'PATCH managedclustersets/status': ofSets = 0, ...ofMembers } = writes
    expect(ofSets).toBeLessThan(names.length)
    expect(sumOf(ofMembers)).toBeLessThanOrEqual(16 * names.length)
  })
})

const sumOf = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0)

/** What was refused, as somebody else was faster, is tried again. */
function split(counts: Readonly<Record<string, number>>) {
  const some = (wanted: (what: string) => boolean) =>
    Object.fromEntries(Object.entries(counts).filter(([what]) => wanted(what)))
  const isConflict = (what: string) => what.endsWith(' 409')
  const isRead = (what: string) => what.startsWith('GET ')
  return {
    conflicts: sumOf(some(isConflict)),
    reads: some(isRead),
    writes: some((what) => !isConflict(what) && !isRead(what)),
  }
}
