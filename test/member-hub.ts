/** Hubs that look after members, as people start them: the embedded one, and one on a real kube-apiserver. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { redisMissing, startRedis, type TestRedis } from '../src/pipeline/state/test/redis-server.ts'
import { signerOf } from '../src/platform/authority/test/requests.ts'
import { clusterpulse, program, type Running } from './process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from './real-apiserver.ts'

export interface MemberHub extends AsyncDisposable {
  /** file of its administrator's kubeconfig */
  readonly kubeconfig: string
  readonly pid: number
}

/** `clusterpulse up` with these arguments, on ports of its own. @param folder for what it keeps */
export async function embeddedHub(folder: string, args: readonly string[] = ['--demo']): Promise<MemberHub> {
  const data = join(folder, 'data')
  const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
  const hub = clusterpulse(['up', ...args, '--data-dir', data, ...ports])
  await hub.says(/on http:\/\/127\.0\.0\.1:\d+/)
  return {
    kubeconfig: join(data, 'kubeconfig'),
    pid: hub.pid,
    // Asked, not killed: the agent it started ends with it and writes no more.
    [Symbol.asyncDispose]: async () => void (await hub.kill('SIGTERM')),
  }
}

/**
 * A real kube-apiserver with the controllers that members need: it signs certificates, fills roles that collect others, and ends
 * namespaces. Beside it the manager, as a service account with what `deploy/` grants and no more.
 */
export async function kubernetesHub(folder: string): Promise<MemberHub> {
  let real: RealApiServer | undefined
  let redis: TestRedis | undefined
  let manager: Running | undefined
  const stop = async () => {
    await manager?.kill('SIGTERM')
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
  }
  try {
    const signer = signerOf('clients')
    real = await startRealApiServer(undefined, { clientCa: signer.certificate })
    const controllers = ['certificatesigningrequest-signing', 'clusterrole-aggregation', 'namespace']
    const isControlled = await real?.runControllers(
      controllers.map((name) => `${name}-controller`),
      ['--cluster-signing-cert-file={dir}/signer.crt', '--cluster-signing-key-file={dir}/signer.key'],
      { 'signer.crt': signer.certificate, 'signer.key': signer.key },
    )
    if (!real || !isControlled) throw new Error('no real kube-apiserver with its controllers')
    redis = await startRedis()
    const kubeconfig = join(folder, 'admin.yaml')
    await writeFile(kubeconfig, real.kubeconfig)
    const kubectl = kubectlOf(kubeconfig)
    for (const from of [
      ['-k', 'deploy/crds'],
      ['-k', 'deploy/crds/ocm'],
      ['-f', 'deploy/base/namespace.yaml'],
    ])
      await kubectl(['apply', '--server-side', ...from])
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    const component = ['shared-roles', 'role', 'admission'].flatMap((name) => [
      '-f',
      `deploy/components/members/${name}.yaml`,
    ])
    await kubectl(['apply', '-n', 'clusterpulse', '-f', 'deploy/base/manager.yaml', ...component])
    const token = (await kubectl(['-n', 'clusterpulse', 'create', 'token', 'clusterpulse-manager'])).trim()
    const own = join(folder, 'manager.yaml')
    await writeFile(own, real.kubeconfig.replace(/token: .*/, `token: ${token}`))
    manager = clusterpulse(['manager', '--leader-elect'], {
      env: {
        ...{ KUBECONFIG: own, MEMBERS: 'true', INGESTER_ENABLED: 'false', DATA_DIR: join(folder, 'manager') },
        ...{ REDIS_HOST: redis.host, REDIS_PORT: String(redis.port) },
      },
    })
    return { kubeconfig, pid: manager.pid, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const noReal = noRealApiServer()
const controllersProgram = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kube-controller-manager')
const noControllers = existsSync(controllersProgram) ? undefined : `no ${controllersProgram}`

/** For `describe.each`. `skip` says why there can be no such hub here; with CI_REQUIRE_ALL=1 nothing is skipped. */
export const memberHubs = [
  // kubectl is where the real server is.
  { title: 'the embedded hub', open: embeddedHub, skip: noReal },
  { title: 'a hub on Kubernetes', open: kubernetesHub, skip: noReal ?? redisMissing ?? noControllers },
].map((one) => ({ ...one, skip: process.env.CI_REQUIRE_ALL === '1' ? undefined : one.skip }))

/** `kubectl` with a kubeconfig. @returns what it says; throws what it complains of */
export function kubectlOf(kubeconfig: string) {
  return async (args: readonly string[], input?: string): Promise<string> => {
    const run = program('kubectl', ['--kubeconfig', kubeconfig, ...args], input === undefined ? {} : { input })
    const code = await run.ended()
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${run.stderr()}${run.stdout()}`)
    return run.stdout()
  }
}
