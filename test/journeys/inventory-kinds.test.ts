import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type KollectKnown, kollectAdmission, kollectKinds, refusedKollectKinds } from '#kinds'
import { createKubeClient, type KubeClient } from '#kube'
import { silentLogger } from '#runtime'
import { listenWebhooks, type WebhookListener, webhookConfigurations } from '#webhooks'
import { type Identity, identity } from '../../src/platform/kube/testing/scripted-server.ts'
import { clusterpulse, eventually, nobodysKubeconfig, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const EXAMPLES = 'deploy/examples/kollect'
const FOREIGN = `${EXAMPLES}/foreign-secret.yaml.original`
const NEXT_STEP = /Secrets are read from the sink's own namespace "team-a" alone\. Copy the Secret there/
const strict: KollectKnown = { semantics: 'strict', maxExportBytes: 1_572_864 }
const old = (kind: string) =>
  `apiVersion: kollect.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: old }\nspec: { type: postgres }\n`

type Kubectl = (
  args: string,
  input?: string,
) => Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>

const kubectlOf =
  (kubeconfig: string): Kubectl =>
  async (args, input) => {
    const run = program(
      'kubectl',
      ['--kubeconfig', kubeconfig, ...args.split(' ')],
      input === undefined ? {} : { input },
    )
    return { code: await run.ended(), out: run.stdout(), err: run.stderr() }
  }

async function expectEveryKindApplied(kubectl: Kubectl): Promise<void> {
  const applied = await kubectl(`apply -k ${EXAMPLES}`)
  expect(applied.err).toBe('')
  expect(applied.code).toBe(0)
  for (const { definition } of kollectKinds)
    expect(applied.out).toMatch(new RegExp(`^${definition.singular}\\.kollect\\.dev/\\S+ created$`, 'm'))
  // Applied again nothing changes: what is stored is what was written, and its defaults. (Secrets lose their stringData.)
  const again = await kubectl(`apply -k ${EXAMPLES}`)
  expect(
    again.out
      .trim()
      .split('\n')
      .filter((line) => line.includes('.kollect.dev/') && !line.endsWith(' unchanged')),
  ).toEqual([])
}

/** What people type, and the columns they see. */
async function expectColumns(kubectl: Kubectl): Promise<void> {
  const heads: Record<string, string> = {}
  for (const { definition } of kollectKinds) {
    const [short = ''] = definition.shortNames
    const { out, err } = await kubectl(`get ${short} -A`)
    expect(err).toBe('')
    heads[short] = out.split('\n')[0]?.replace(/ +/g, ' ').trim() ?? ''
  }
  expect(heads).toEqual({
    kprof: 'NAMESPACE NAME KIND GROUP AGE',
    ktgt: 'NAMESPACE NAME READY SYNCED COLLECTED UPDATED AGE',
    kinv: 'NAMESPACE NAME READY SYNCED ITEMS EXPORTED AGE',
    ksnap: 'NAMESPACE NAME TYPE CLUSTER VERIFIED TESTED SYNCED ITEMS EXPORTED BEHIND AGE',
    kdb: 'NAMESPACE NAME TYPE CLUSTER VERIFIED TESTED SYNCED ITEMS EXPORTED BEHIND AGE',
    kevt: 'NAMESPACE NAME TYPE CLUSTER VERIFIED TESTED SYNCED ITEMS EXPORTED BEHIND AGE',
    kscope: 'NAMESPACE NAME FLOOR AGE',
    kconntest: 'NAMESPACE NAME SINK VERIFIED AGE',
    kctgt: 'NAME PROFILE READY AGE',
    kcinv: 'NAME READY SYNCED TARGETS ITEMS EXPORTED AGE',
    kcscope: 'NAME FLOOR AGE',
  })
  expect((await kubectl('get kconntest -n team-a')).out).toMatch(/^warehouse +warehouse /m)
  // The cluster is what an agent writes under; none runs here.
  expect((await kubectl('get kdb warehouse -n team-a')).out).toMatch(/^warehouse +postgres +\d+s/m)
  const kept = await kubectl('get kinv apps -n team-a -o json')
  expect(JSON.parse(kept.out).spec).toMatchObject({
    databaseSinkRefs: ['warehouse'],
    snapshotSinkRefs: ['git', { name: 'bucket', exportMinInterval: '10m', maxExportBytes: 1_048_576 }],
  })
  expect((await kubectl('explain kdb.spec.postgres.table')).out).toContain('table of the rows')
}

async function expectClusterSinksRefused(kubectl: Kubectl): Promise<void> {
  for (const { kind } of refusedKollectKinds) {
    const { code, err } = await kubectl('apply -f -', old(kind))
    expect(code).toBe(1)
    expect(err).toMatch(
      /is refused: sinks live in namespaces\. Write a Kollect(Snapshot|Database|Event)Sink into kollect-system/,
    )
  }
}

describe('inventory on the embedded API', () => {
  let folder: string
  let dataDir: string
  let hub: Running | undefined
  const kubectl: Kubectl = (args, input) => kubectlOf(join(dataDir, 'kubeconfig'))(args, input)

  async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await hub?.kill('SIGTERM')
    const members = ['--kubeconfig', await nobodysKubeconfig(folder)]
    hub = clusterpulse(['up', ...members, '--port', '0', '--control-plane-port', '0', '--data-dir', dataDir], { env })
    await eventually(
      () => kubectl('get --raw /readyz'),
      ({ code }) => code === 0,
    )
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inventory-kinds-'))
    dataDir = join(folder, 'hub')
    await start()
  })
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  it('takes every kind as its example has it', () => expectEveryKindApplied(kubectl))
  it('knows each by its short name, with columns', () => expectColumns(kubectl))
  it('tells who applies a sink of the cluster what to write instead', () => expectClusterSinksRefused(kubectl))

  it('names every fault at once, with what to do', async () => {
    const wrong =
      'apiVersion: kollect.dev/v1alpha1\nkind: KollectSnapshotSink\nmetadata: { name: wrong, namespace: team-a }\nspec:\n  type: git\n  endpoint: https://169.254.169.254/a.git\n  pathTemplate: "{name}"\n  git: { pushPolicy: ForcePush, branch: refs/heads/main }\n  serialization: { compression: gzip }\n'
    const { code, err } = await kubectl('apply -f -', wrong)
    expect(code).toBe(1)
    for (const path of [
      'spec.endpoint',
      'spec.pathTemplate',
      'spec.git.pushPolicy',
      'spec.git.branch',
      'spec.serialization.compression',
    ])
      expect(err).toContain(`${path}`)
    expect(err).toContain('set KOLLECT_SEMANTICS=original while you migrate')
  })

  it('refuses a Secret of another namespace, and takes it with the semantics of the original', async () => {
    const refused = await kubectl(`apply -f ${FOREIGN}`)
    expect(refused.err).toMatch(NEXT_STEP)
    await start({ KOLLECT_SEMANTICS: 'original' })
    expect((await kubectl(`apply -f ${FOREIGN}`)).out).toContain('shared-warehouse created')
    await start()
    // What was admitted may still be labelled, finalized and deleted where it would be refused now.
    expect((await kubectl('label kdb shared-warehouse -n team-a seen=yes')).code).toBe(0)
    expect((await kubectl('delete kdb shared-warehouse -n team-a')).code).toBe(0)
  })
})

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(skip)(`inventory on a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let folder: string
  let real: RealApiServer
  let kube: KubeClient
  let webhooks: WebhookListener | undefined
  const kubectl: Kubectl = (args, input) => kubectlOf(join(folder, 'kubeconfig'))(args, input)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inventory-real-'))
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    real = started
    kube = createKubeClient(real.access)
    await writeFile(join(folder, 'kubeconfig'), real.kubeconfig)
    const defined = clusterpulse(['crds', '--kollect'])
    await defined.ended()
    expect((await kubectl('apply -f -', defined.stdout())).err).toBe('')
    const names = [...kollectKinds, ...refusedKollectKinds].map(({ plural }) => `crd/${plural}.kollect.dev`).join(' ')
    expect((await kubectl(`wait --for=condition=Established --timeout=60s ${names}`)).code).toBe(0)
  })
  afterAll(async () => {
    await webhooks?.[Symbol.asyncDispose]()
    await kube?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('takes every kind as its example has it', () => expectEveryKindApplied(kubectl))
  it('knows each by its short name, with columns', () => expectColumns(kubectl))
  it('tells who applies a sink of the cluster what to write instead, without any webhook', () =>
    expectClusterSinksRefused(kubectl))

  it('refuses by the webhook what the embedded API refuses', async () => {
    const tls: Identity = await identity()
    const rules = kollectAdmission(strict)
    webhooks = await listenWebhooks({ rules, kube, tls, port: 0, logger: silentLogger })
    const reached = { url: `https://127.0.0.1:${webhooks.port}`, caBundle: tls.ca }
    for (const configuration of webhookConfigurations({ name: 'inventory', rules, reached })) {
      const { kind } = configuration as { kind: string }
      await kube.request('POST', `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`, {
        body: configuration,
      })
    }
    await eventually(
      () => kubectl(`apply --dry-run=server -f ${FOREIGN}`),
      ({ err }) => NEXT_STEP.test(err),
    )
    expect((await kubectl(`apply -k ${EXAMPLES}`)).code).toBe(0)
    const gcs = (await readFile(`${EXAMPLES}/snapshot-sink.yaml`, 'utf8')).replaceAll('type: s3', 'type: gcs')
    expect((await kubectl('apply -f -', gcs)).err).toMatch(/spec\.type:? is "gcs", which is not built/)
  })
})
