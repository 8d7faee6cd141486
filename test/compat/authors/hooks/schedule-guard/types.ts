export interface ScheduleFired { agentId: string; at: string; scheduleId: string; type: 'cron' | 'once'; prompt: string }
export interface AgentContext {
  bus: { on(event: 'schedule.fired@v1', h: (p: ScheduleFired) => ScheduleFired | Promise<ScheduleFired>, o?: { priority?: number }): void };
}
