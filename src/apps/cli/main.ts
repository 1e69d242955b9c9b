import { writeFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import { keepProcessSmall } from '#runtime'
import { type Actions, DEFAULT_SERVER, type GetOptions, program } from './commands.ts'
import type { GetOptions as Wish } from './get.ts'
import { printable, printableLine } from './terminal.ts'

const version = process.env.CLUSTERPULSE_VERSION ?? '0.0.0-dev'

const token = (): { token?: string } =>
  process.env.CLUSTERPULSE_TOKEN ? { token: process.env.CLUSTERPULSE_TOKEN } : {}

const actions: Actions = {
  async up(options) {
    const { readUpConfig, up } = await import('#hub')
    const { config, warnings } = await readUpConfig(process.env, {
      DATA_DIR: options.dataDir,
      API_HOST: options.host,
      API_PORT: options.port,
      CONTROL_PLANE_PORT: options.controlPlanePort,
      INGESTER_HOST: options.ingesterHost,
      INGESTER_PORT: options.ingesterPort,
      INGESTER_ADVERTISE: options.ingesterAdvertise,
      READ_ONLY_MEMBERS: options.readOnlyMembers ? 'true' : undefined,
    })
    await up({
      config,
      warnings,
      version,
      demo: options.demo ?? false,
      acceptLoss: options.acceptLoss ?? false,
      seed: options.seed ?? 1,
      contexts: options.context ?? [],
      ...(options.kubeconfig !== undefined && { kubeconfig: options.kubeconfig }),
      environment: process.env,
    })
  },

  async manager(options) {
    const { manager, readManagerConfig } = await import('#hub')
    const { config, warnings } = await readManagerConfig(process.env, {
      NAMESPACE: options.namespace,
      LEADER_ELECT: options.leaderElect ? 'true' : undefined,
      METRICS_BIND_ADDRESS: options.metricsBindAddress,
      HEALTH_PROBE_BIND_ADDRESS: options.healthProbeBindAddress,
      KUBECONFIG: options.kubeconfig,
      DATA_DIR: options.dataDir,
    })
    await manager({ config, warnings, version })
  },

  async api(options) {
    const { api, readApiConfig } = await import('#hub')
    const { config, warnings } = await readApiConfig(process.env, { API_HOST: options.host, API_PORT: options.port })
    await api({ config, warnings, version })
  },

  async clusterMonitor(flags) {
    const { clusterMonitor, readClusterMonitorConfig } = await import('#hub')
    const { config, warnings } = await readClusterMonitorConfig(process.env, flags)
    await clusterMonitor({ config, warnings, version, flags })
  },

  get: (noun, names, options) => printed({ noun, names }, options),

  top: (what, { sort, limit, ...options }) =>
    printed({ noun: { kind: what }, names: [], top: { what, sort, count: limit } }, options),

  async completion(shell) {
    const { completionScript } = await import('./complete.ts')
    process.stdout.write(`${completionScript(shell)}\n`)
  },

  async complete(words) {
    const { candidates } = await import('./complete.ts')
    const { words: found, clusters } = candidates(program(actions, version), words)
    const written = words.at(-1) ?? ''
    const names = clusters ? await askedNames(words) : []
    const fitting = [...found, ...names.filter((name) => name.startsWith(written))]
    if (fitting.length > 0) process.stdout.write(`${fitting.map(printable).join('\n')}\n`)
  },

  async agent(options) {
    keepProcessSmall()
    const { readAgentConfig, runAgent } = await import('#agent-app')
    const { config, warnings } = readAgentConfig(process.env, {
      CLUSTER_NAME: options.cluster,
      INGESTER_ADDRESS: options.ingester,
      KUBECONFIG: options.kubeconfig,
      KUBECONTEXT: options.context,
      BUFFER_DIR: options.bufferDir,
    })
    await runAgent({ config, warnings, version })
  },

  async connect(cluster, { ttl, bearerToken, accept, ...options }) {
    const { connect } = await import('#hub')
    // All that was written: what is added there must arrive.
    const revoke = options.revoke ?? false
    const as = bearerToken ? 'bearer' : { lifeMs: ttl, accept: accept ?? false, rights: options.rights }
    answered(await connect({ ...options, as, cluster, revoke, environment: process.env }))
  },

  async join(token, options) {
    keepProcessSmall()
    const { runJoin } = await import('#agent-app')
    const flags = {
      KUBECONFIG: options.kubeconfig,
      KUBECONTEXT: options.context,
      BUFFER_DIR: options.bufferDir,
      AGENT_RIGHTS: options.rights,
    }
    const say = (text: string) => void process.stderr.write(`${printableLine(text)}\n`)
    await runJoin({ token, env: process.env, flags, version, say })
  },

  async accept(cluster, options) {
    const { acceptMember } = await import('#hub')
    answered(await acceptMember({ ...options, cluster, environment: process.env }))
  },

  async deny(cluster, options) {
    const { denyMember } = await import('#hub')
    answered(await denyMember({ ...options, cluster, environment: process.env }))
  },

  async revoke(cluster, options) {
    const { revoke } = await import('#hub')
    answered(await revoke({ ...options, cluster, environment: process.env }))
  },

  async detach(cluster, options) {
    const { detachMember } = await import('#hub')
    answered(await detachMember({ ...options, cluster, environment: process.env }))
  },

  async bootstrapKubeconfig({ ttl, ...options }) {
    const { bootstrap } = await import('#hub')
    answered(await bootstrap({ ...options, lifeMs: ttl, environment: process.env }))
  },

  async explainAccess(options) {
    const { explain } = await import('./access.ts')
    show(await explain({ ...options, ...token() }))
  },

  async testAccess(options) {
    const { testPolicies } = await import('./access-test.ts')
    show(await testPolicies(options))
  },

  async verifyAudit(file, { expect }) {
    const { auditReport } = await import('./audit.ts')
    const { ok, text } = await auditReport(file, { key: process.env.AUDIT_KEY, expect })
    if (!ok) process.exitCode = 1
    ;(ok ? process.stdout : process.stderr).write(text)
  },

  async showAudit(file, options) {
    const { auditTable } = await import('./audit.ts')
    const { auditTrail } = await import('#hub')
    const { isWanted, print } = auditTable(options)
    const records = await auditTrail(file, { last: options.last, isWanted, environment: process.env })
    process.stdout.write(`${print(records)}\n`)
  },

  async unseal(file, { dataDir }) {
    const { readUpConfig, unsealed } = await import('#hub')
    const { config } = await readUpConfig(process.env, { DATA_DIR: dataDir })
    process.stdout.write(await unsealed(file, config))
  },

  async evaluateSource({ file, at, ...options }) {
    const { evaluate } = await import('./metricsource.ts')
    const isTerminal = process.stderr.isTTY
    const onProgress = (text: string) => void process.stderr.write(`\r${text}`)
    show(
      await evaluate({
        ...options,
        files: file,
        now: (await import('./time.ts')).timeOf(at),
        ...(isTerminal && { onProgress }),
      }),
    )
  },

  async testSource(options) {
    const { testSources } = await import('./metricsource-test.ts')
    show(testSources(options))
  },

  async expression(text, { context, at, functions }) {
    const { evaluateExpression } = await import('./expression.ts')
    const given = text === undefined ? {} : { text }
    show(
      evaluateExpression({
        ...given,
        context,
        now: (await import('./time.ts')).timeOf(at),
        functions: functions ?? false,
      }),
    )
  },

  async crds({ ocm, kollect }) {
    const { crdYaml, kinds, kollectKinds, ocmKinds, refusedKollectKinds } = await import('#kinds')
    const wanted = [...(ocm ? ocmKinds : []), ...(kollect ? [...kollectKinds, ...refusedKollectKinds] : [])]
    process.stdout.write(crdYaml(wanted.length > 0 ? wanted : kinds))
  },

  async init(folder, { yes, ...options }) {
    const { init } = await import('./init.ts')
    const { asker } = await import('./ask.ts')
    await using terminal = yes || !process.stdin.isTTY ? undefined : asker()
    const wish = {
      ...{ ...options, folder, environment: process.env, signal: terminal?.signal ?? new AbortController().signal },
      ...(terminal && { ask: terminal.ask }),
    }
    answered(await ofManifests(() => init(wish)))
  },

  async validate(paths, options) {
    const { validate } = await import('./validate.ts')
    const { text, notes, status } = await ofManifests(() => validate({ ...options, paths, environment: process.env }))
    show({ text, notes })
    process.exitCode = status
  },

  async collect({ logLevel, dryRun = false, ...options }) {
    const { collect } = await import('./collect.ts')
    const { onProgress, done } = (await import('./progress.ts')).progress(logLevel === 'debug' || logLevel === 'info')
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    const out = (text: string) => void process.stdout.write(text)
    const ways = { environment: process.env, signal: stop.signal, now: Date.now, onProgress, out }
    const { text, notes, status } = await collect({ ...options, dryRun }, ways)
    done()
    if (logLevel !== 'error' || status === 2) for (const one of notes) note(one)
    if (text !== '' && (logLevel === 'debug' || logLevel === 'info')) process.stderr.write(`${text}\n`)
    process.exitCode = status
  },

  async inventoryRole(options) {
    const { inventoryRole } = await import('./inventory-role.ts')
    const { signal } = new AbortController()
    answered(await ofManifests(() => inventoryRole({ ...options, environment: process.env, signal })))
  },

  async simulate(options) {
    const { simulate } = await import('./simulate.ts')
    await simulate({ ...options, write: (file, text) => writeFileSync(file, text, { mode: 0o600 }) })
  },

  async probe(url) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) })
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  },
}

/** Work on manifests: what is wrong with them, or that there are none, is exit status 2. */
async function ofManifests<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    process.exitCode = 2
    throw error
  }
}

/** Rows, once or as they change, until a signal. */
async function printed(
  what: Pick<Wish, 'noun' | 'names' | 'top'>,
  { cluster, set, namespace, selector, output, server, watch: isWatched }: GetOptions,
): Promise<void> {
  const { get, watch } = await import('./get.ts')
  const wish = {
    ...{ ...what, server, clusters: cluster, output },
    ...(set !== undefined && { set }),
    ...(namespace !== undefined && { namespace }),
    ...(selector !== undefined && { selector }),
    ...token(),
  }
  const out = (text: string) => void process.stdout.write(`${text}\n`)
  if (isWatched) {
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    await watch(wish, { out, note, signal: stop.signal })
    return
  }
  const { text, notes } = await get(wish)
  if (text !== '') out(text)
  for (const one of notes) note(one)
}

function answered({ text, notes }: { readonly text: string; readonly notes: readonly string[] }): void {
  for (const one of notes) note(one)
  process.stdout.write(text)
}

const note = (text: string): void => void process.stderr.write(`note: ${printable(text)}\n`)

/** Names of clusters of the hub that this command line, or the environment, names. */
async function askedNames(words: readonly string[]): Promise<readonly string[]> {
  const { clusterNames } = await import('./cluster-names.ts')
  const at = words.indexOf('--server')
  const server = at >= 0 ? words[at + 1] : process.env.CLUSTERPULSE_SERVER
  return clusterNames(server || DEFAULT_SERVER, token().token)
}

function show({ text, notes, failed }: { text: string; notes: readonly string[]; failed?: boolean }): void {
  if (text !== '') process.stdout.write(`${text}\n`)
  // A place in a text is shown on lines of its own, with a caret under it.
  for (const note of notes) process.stderr.write(`note: ${note.split('\n').map(printableLine).join('\n')}\n`)
  if (failed) process.exitCode = 1
}

/** After a failure: what was written is out by then. */
const LAST_MOMENT_MS = 2_000

const ONE_DASH = /^-(addr|refresh|api-server|log-service|log-source|nats)(?==|$)/

/** Of `cluster-monitor`: flags as the original has them, with one dash. */
export const withLongFlags = (argv: readonly string[]): readonly string[] =>
  argv[2] === 'cluster-monitor' ? argv.map((word) => word.replace(ONE_DASH, '--$1')) : argv

/** Runs one command. A failure is one sentence on standard error and exit status 1, or 3 where no hub answers. */
export async function main(argv: readonly string[]): Promise<void> {
  // Who reads us may have enough: `clusterpulse get events | head`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  try {
    await program(actions, version).parseAsync([...withLongFlags(argv)])
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode // what is wrong was said
      return
    }
    const { failureOf } = await import('./failure.ts')
    const { text, status } = failureOf(error)
    process.exitCode ??= status
    process.stderr.write(`clusterpulse: ${text}\n`)
    // What was begun before the failure must not keep a process that does nothing.
    setTimeout(() => process.exit(), LAST_MOMENT_MS).unref()
  }
}
