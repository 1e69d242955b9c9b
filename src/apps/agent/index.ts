/**
 * The agent's process: reads its configuration, opens the cluster and the buffer, pushes to the hub until a signal ends it.
 * Bundled alone (main.ts) it holds no code of the hub; the command line's `agent` is the same thing.
 */
export { allSettings, readAgentConfig } from './config.ts'
export { type RunJoinOptions, runJoin } from './join.ts'
export { runAgent } from './run.ts'
