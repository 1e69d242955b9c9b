import { demoFaults } from '#simulator'
import { offRegistry } from './demo-sources.ts'

/** @param asked whether somebody asked for the demo, or nothing else was there to show */
export function startWords(asked: boolean): string {
  const why = asked ? '' : ', as there is no kubeconfig (clusterpulse up --kubeconfig FILE shows your own clusters)'
  return `Starting: a simulated fleet of six clusters${why} …`
}

/** What somebody who sees the demo for the first time could take for a failure, and what is made up. */
export function demoWords(hasHistory: boolean): string {
  const lines = [
    `Wrong on purpose, so that there is something to see: ${[...demoFaults, `the registry ${offRegistry} is off`].join('; ')}. Warnings about them are expected.`,
    ...(hasHistory ? ['Its last 30 days are made up as well, and History marks them so.'] : []),
  ]
  return lines.map((line) => `  ${line}`).join('\n')
}
