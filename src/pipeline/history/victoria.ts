import type { HistoryStore } from './types.ts'

export interface VictoriaHistoryOptions {
  readonly endpoint: string
}

export class VictoriaHistory {
  static open(_options: VictoriaHistoryOptions): Promise<HistoryStore> {
    throw new Error('TODO')
  }
}
