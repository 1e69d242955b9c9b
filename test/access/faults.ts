import { spawnSync } from 'node:child_process'
import { bundle, type Mutation } from './bundle.ts'

/** A mistake as people make them. */
export interface Fault {
  readonly name: string
  readonly mutations: readonly Mutation[]
  /** every how many worlds the API is asked; 0 where the access core alone shows it */
  readonly apiEvery: number
}

export const faults: readonly Fault[] = []

/** Runs the fuzz over the source with this mistake in it. */
export async function runFault(
  fault: Fault,
  directory: string,
  worlds = 4000,
): Promise<{ found: boolean; detail: string; ms: number }> {
  const began = Date.now()
  const file = await bundle(directory, fault.name.replaceAll(/\W+/g, '-'), fault.mutations)
  const words = ['--seed', '1', '--worlds', String(worlds), '--api-every', String(fault.apiEvery)]
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...words], {
    env: { ...process.env, ACCESS_FUZZ_WORKER: '1' },
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
    timeout: 120_000,
  })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{'))
    throw new Error(`the fuzz did not run with the fault "${fault.name}":\n${stderr.slice(-2000)}`)
  const { failure } = JSON.parse(last) as { failure?: { kind: string; seed: number } }
  return {
    found: status === 1 && failure !== undefined,
    detail: failure ? `${failure.kind}, seed ${failure.seed}` : 'no difference',
    ms: Date.now() - began,
  }
}
