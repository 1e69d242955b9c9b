import { resolve } from 'node:path'
import { keepHeapTight } from '#runtime'
import { scenarios, simulateFleet } from '#simulator'
import type { SimulateOptions } from './commands.ts'

/** Serves simulated clusters until SIGINT or SIGTERM. The kubeconfig is there when the line with its path is printed. */
export async function simulate(
  options: SimulateOptions & { readonly write: (file: string, text: string) => void },
): Promise<void> {
  const { clusters, nodes, pods, seed, kubeconfigOut, port, write } = options
  keepHeapTight()
  const fleet = await simulateFleet(scenarios.plain({ clusters, nodes, pods, seed, lives: true }), {
    seed,
    host: '127.0.0.1',
    port,
  })
  try {
    write(kubeconfigOut, fleet.kubeconfig())
    process.stdout.write(
      `${clusters} cluster${clusters === 1 ? '' : 's'} of ${nodes} nodes and ${pods} pods each; kubeconfig in ${resolve(kubeconfigOut)}; Ctrl-C ends them\n`,
    )
    await new Promise<void>((done) => {
      process.once('SIGINT', () => done())
      process.once('SIGTERM', () => done())
    })
  } finally {
    await fleet[Symbol.asyncDispose]()
  }
}
