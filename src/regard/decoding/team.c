/* Threads that do one call together: each goes through the same steps, sees to its share of each, and waits for the
 * others wherever a step reads what another thread wrote. Which thread computes a number does not change it. They last
 * as long as the call: starting one takes some 20 microseconds.
 */
#include <pthread.h>
#include <stdatomic.h>

enum { MOST_THREADS = 64 };

typedef struct {
    int of; /* how many there are, known once all have been started */
    atomic_int waiting, round;
    pthread_mutex_t lock;
    pthread_cond_t next;
} Meeting;

typedef struct {
    int me, of;
    Meeting *at;
} Team;

typedef struct {
    void (*work)(const void *model, const void *batch, Team team);
    const void *model, *batch;
    int me;
    Meeting *at;
} Member;

static const Team ALONE = {.me = 0, .of = 1};

/* of `count` things in a row, where this thread's share begins and where it ends */
static int begin_of(Team team, int count) { return (int)((long)count * team.me / team.of); }
static int end_of(Team team, int count) { return (int)((long)count * (team.me + 1) / team.of); }

/* wait until a round is over: awake at first, since a step takes microseconds, then asleep */
static void wait_for(Meeting *at, int round) {
    for (int turn = 0; turn < 2000; turn++) {
        if (atomic_load(&at->round) != round) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&at->lock);
    while (atomic_load(&at->round) == round) pthread_cond_wait(&at->next, &at->lock);
    pthread_mutex_unlock(&at->lock);
}

/* let those go on who wait for the round to be over */
static void next_round(Meeting *at) {
    pthread_mutex_lock(&at->lock);
    atomic_fetch_add(&at->round, 1);
    pthread_cond_broadcast(&at->next);
    pthread_mutex_unlock(&at->lock);
}

/* wait until all are here */
static void meet(Team team) {
    if (team.of == 1) return;
    const int round = atomic_load(&team.at->round);
    if (atomic_fetch_add(&team.at->waiting, 1) == team.of - 1) {
        atomic_store(&team.at->waiting, 0);
        next_round(team.at);
    } else {
        wait_for(team.at, round);
    }
}

static void *take_part(void *given) {
    const Member *member = given;
    wait_for(member->at, 0);
    member->work(member->model, member->batch, (Team){.me = member->me, .of = member->at->of, .at = member->at});
    return 0;
}

/* let `threads` threads do the work, this one among them, or as many as the system lends */
static void together(void (*work)(const void *, const void *, Team), const void *model, const void *batch, int threads) {
    pthread_t started[MOST_THREADS];
    Member members[MOST_THREADS];
    Meeting meeting = {.of = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .next = PTHREAD_COND_INITIALIZER};
    for (; meeting.of < threads && meeting.of < MOST_THREADS; meeting.of++) {
        const int of = meeting.of;
        members[of] = (Member){.work = work, .model = model, .batch = batch, .me = of, .at = &meeting};
        if (pthread_create(&started[of], 0, take_part, &members[of])) break;
    }
    next_round(&meeting);
    work(model, batch, (Team){.me = 0, .of = meeting.of, .at = &meeting});
    for (int i = 1; i < meeting.of; i++) pthread_join(started[i], 0);
}
