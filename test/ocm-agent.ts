/**
 * The registration agent of Open Cluster Management as a process, for journeys that let it join a hub of ours. The folder that holds it
 * is named by OCM_ASSETS; scripts/build-ocm.sh makes one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'
import { freeze } from '../src/platform/runtime/testing/freeze.ts'

/** The namespace on the member in which the agent keeps its Secrets. */
export const AGENT_NAMESPACE = 'open-cluster-management-agent'

const programOf = (folder: string) => join(folder, 'registration')

/** Why there is no agent here; undefined where there is one. With CI_REQUIRE_ALL=1 nothing is skipped. */
export function noOcmAgent(): string | undefined {
  if (process.env.CI_REQUIRE_ALL === '1') return undefined
  const folder = process.env.OCM_ASSETS
  if (!folder) return 'OCM_ASSETS is not set'
  return existsSync(programOf(folder)) ? undefined : 'there is no registration agent in OCM_ASSETS'
}

export interface OcmAgent extends AsyncDisposable {
  /** what it said so far, the last 64 KiB */
  log(): string
  /** SIGSTOP: it runs no further and its connections stay; `thaw` lets it go on */
  freeze(): Promise<void>
  thaw(): void
  hasEnded(): boolean
}

export interface OcmAgentOptions {
  /** what the member shall be called */
  readonly cluster: string
  /** kubeconfig with which it may ask to join */
  readonly bootstrap: string
  /** kubeconfig of the member, of an administrator; the namespace AGENT_NAMESPACE is there */
  readonly member: string
  /** https address of the member's API, which it tells the hub; default: none */
  readonly address?: string
}

const LOG_BYTES = 64 * 1024

/** Starts an agent; it ends with `Symbol.asyncDispose`, its folder too. */
export async function startOcmAgent({ cluster, bootstrap, member, address }: OcmAgentOptions): Promise<OcmAgent> {
  const folder = await mkdtemp(join(tmpdir(), 'ocm-agent-'))
  const file = async (name: string, text: string) => {
    const path = join(folder, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
  const hubDirectory = join(folder, 'hub')
  await mkdir(hubDirectory)
  const memberFile = await file('member.yaml', member)
  const child: ChildProcess = spawn(
    programOf(process.env.OCM_ASSETS ?? ''),
    [
      'agent',
      `--spoke-cluster-name=${cluster}`,
      `--bootstrap-kubeconfig=${await file('bootstrap.yaml', bootstrap)}`,
      `--kubeconfig=${memberFile}`,
      `--spoke-kubeconfig=${memberFile}`,
      `--hub-kubeconfig-dir=${hubDirectory}`,
      `--namespace=${AGENT_NAMESPACE}`,
      ...(address === undefined ? [] : [`--spoke-external-server-urls=${address}`]),
      '--disable-leader-election',
      // Port 0 means to serve nothing, which its own start does not survive.
      `--listen=127.0.0.1:${await freePort()}`,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH ?? '', HOME: folder }, cwd: folder },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-LOG_BYTES)
    })
  const over = once(child, 'close')
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  return {
    log: () => log,
    freeze: () => freeze(child),
    thaw: () => void child.kill('SIGCONT'),
    hasEnded,
    async [Symbol.asyncDispose]() {
      if (!hasEnded()) child.kill('SIGKILL')
      await over
      await rm(folder, { recursive: true, force: true })
    },
  }
}
