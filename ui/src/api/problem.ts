// What goes wrong, in the three parts people need: what happened, what was not done, what to do next.
import { t } from '../i18n/t'

export interface ProblemBody {
  code: string
  title: string
  status: number
  detail: string
  hint?: string | null
  trace_id?: string | null
  errors?: { pointer: string; detail: string }[] | null
  approval?: unknown
}

export class Problem extends Error {
  constructor(readonly body: ProblemBody) {
    super(body.detail)
    this.name = 'Problem'
  }
  get code(): string {
    return this.body.code
  }
  get status(): number {
    return this.body.status
  }
}

/** The problem in an answer, whoever wrote it. */
export async function problemOf(response: Response): Promise<Problem> {
  const body = await response.json().catch(() => null)
  if (body && typeof body.detail === 'string' && typeof body.code === 'string') return new Problem(body)
  const detail = t('The server answered {status}. It did not say why.', { status: response.status })
  return new Problem({ code: 'unknown', title: t('Something went wrong'), status: response.status, detail })
}

/** The problem in anything that was thrown. */
export function asProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown
  if (thrown instanceof TypeError) {
    return new Problem({
      code: 'unreachable',
      title: t('The server is not answering'),
      status: 0,
      detail: t('The server could not be reached. If it did arrive, sending it again does not do it twice.'),
      hint: t('It is tried again by itself. Is the server still running?'),
    })
  }
  const detail = thrown instanceof Error ? thrown.message : String(thrown)
  return new Problem({ code: 'unknown', title: t('Something went wrong'), status: 0, detail })
}
