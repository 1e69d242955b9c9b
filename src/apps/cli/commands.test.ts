import { expect, it } from 'vitest'
import { type Actions, program } from './commands.ts'

it.each([
  [['validate'], 2],
  [['validate', '--semantics', 'odd', 'x'], 2],
  [['collect', '--format', 'xml'], 2],
  [['init', '--sink', 'foo'], 2],
  [['collect', '--help'], 0],
])('%j ends with %d, as 1 says that a part was done', async (words, exitCode) => {
  const cli = program({} as Actions, '1.0.0') // no action is reached
  for (const one of cli.commands) one.configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
  await expect(cli.parseAsync(['node', 'clusterpulse', ...words])).rejects.toMatchObject({ exitCode })
})
