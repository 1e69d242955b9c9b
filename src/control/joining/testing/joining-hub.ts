import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { API_CLIENT_SIGNER, Authority, folderStore } from '#authority'
import { certificateReconcilers } from '#certificates'
import { Manager } from '#controller'
import type { JoinAsked, JoinStep } from '#ingest'
import { clusterConnection, ocmKinds } from '#kinds'
import { createKubeClient, type KubeClient } from '#kube'
import { type ClusterName, parseClusterName, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { certificateRequest, newKey } from '../../../pipeline/agent/join/certificate-request.ts'
import { HubJoins, type HubJoinsOptions } from '../join-desk.ts'
import { JoinTokens } from '../join-tokens.ts'
import { Members } from '../members.ts'
import type { JoinFact } from '../record.ts'

export const NAMESPACE = 'clusterpulse'

/** A hub as far as joining goes: the embedded API with our kinds, its CA, whoever signs, and the desk. */
export interface JoiningHub extends AsyncDisposable {
  readonly kube: KubeClient
  readonly authority: Authority
  readonly tokens: JoinTokens
  readonly members: Members
  readonly desk: HubJoins
  /** what was written down */
  readonly facts: JoinFact[]
}

/** @param activeAfterMs until a new CA signs */
export async function aJoiningHub({
  activeAfterMs = 0,
  ...options
}: Partial<HubJoinsOptions> & { readonly activeAfterMs?: number } = {}): Promise<JoiningHub> {
  const directory = await mkdtemp(join(tmpdir(), 'joining-'))
  const { clock = systemClock } = options
  const authority = await Authority.open({ store: folderStore(directory), clock, activeAfterMs })
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  for (const kind of [...ocmKinds, clusterConnection]) await server.objects.put(kind.crd() as unknown as ApiObject)
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  const token = 'of-the-hub'
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  const kube = createKubeClient(
    { server: listener.url, ca: listener.caPem, verifyTls: true, credentials: { kind: 'token', token } },
    { qps: 2_000, burst: 4_000 },
  )
  const signing = new Manager({
    name: 'certificates',
    controllers: certificateReconcilers({
      ...{ hub: kube, namespace: NAMESPACE, authority, signers: [API_CLIENT_SIGNER], logger: silentLogger },
    }),
    logger: silentLogger,
  })
  await signing.start()
  const shared = { hub: kube, clock: systemClock, logger: silentLogger }
  const tokens = new JoinTokens({ ...shared, namespace: NAMESPACE })
  const members = new Members(shared)
  const facts: JoinFact[] = []
  const desk = new HubJoins({
    ...shared,
    ...{ tokens, members, clientRoots: async () => authority.pem, serverRoots: () => 'ROOTS' },
    record: async (fact) => void facts.push(fact),
    ...options,
  })
  members.start()
  desk.start()
  while (!members.isSynced) await systemClock.sleep(5)
  return {
    ...{ kube, authority, tokens, members, desk, facts },
    async [Symbol.asyncDispose]() {
      await desk[Symbol.asyncDispose]()
      await members[Symbol.asyncDispose]()
      await signing.stop()
      await kube[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** A machine with a key of its own that asks by a join token. */
export function aMachine(cluster: string, token: string, changes: Partial<JoinAsked> = {}) {
  const key = newKey()
  const agent = 'a1'
  const csr = certificateRequest(key, { cluster, agent })
  const asked: JoinAsked = {
    ...{ token, cluster, agent, csr, version: '1.2.3', address: '10.0.0.1' },
    ...{ certificate: new Uint8Array(), proof: new Uint8Array() },
    ...changes,
  }
  return { key, asked }
}

/** Asks until it ends or was told `count` things; what was told. */
export async function told(hub: JoiningHub, asked: JoinAsked, count = Number.POSITIVE_INFINITY): Promise<JoinStep[]> {
  const stop = new AbortController()
  const steps: JoinStep[] = []
  for await (const step of hub.desk.ask(asked, stop.signal)) {
    steps.push(step)
    if (steps.length >= count) break
  }
  stop.abort()
  return steps
}

export const cluster = (name: string): ClusterName => parseClusterName(name)
