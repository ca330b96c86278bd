/* Beam search in one call: steps, choice of candidates and answers, until so many sentences are over that others may
 * enter. The plain twin is `regard.decoding.group`, which knows every option and says why each thing is done; this one
 * knows those of most searches, and holds no lock of Python's meanwhile, so that threads search side by side.
 *
 * P places for sentences, w rows of each at most, R rows in all, C room for pieces. Rows stand in the order of the
 * active sentences, without gaps; they are written anew at each step, from one of two sets of memory to the other.
 */
enum { SAFE, LIKELY, FULL };
enum { PERIODS = 16 };

typedef struct {
    const float *memory; /* its source, as in Batch */
    int64_t memory_layer;
    int32_t memory_tokens, begin, limit, least;
    int32_t bounds[PERIODS]; /* how long a loop of each period may run on */
    int32_t count, first, rows, answers;
} Sentence;

typedef struct {
    float score, logp;
    int32_t pieces, ended, guarded;
} Answer;

typedef struct {
    float *totals;             /* (R) */
    int32_t *slots, *written;  /* (R, C) */
    int32_t *runs;             /* (R, PERIODS) */
    int32_t *tokens, *acted;   /* (R) */
} Rows;

typedef struct {
    Sentence *sentences;     /* (P) */
    int32_t *active, *left;  /* (P) places of those that are written, and of those that are over */
    Answer *answers;         /* (P, w) in the order of their coming */
    int32_t *ids;            /* (P, w, C) what they say */
    Rows now, next;
    int32_t *barred, *bars;  /* (R, most_barred) and (R): pieces that a row may not write, and how many they are */
    int32_t *free;           /* (room) slots that no row needs */
    uint8_t *marks;          /* (room) */
    float penalty;
    int32_t width, stride, most_barred, end, guard, stopping, gnmt, needed;
    int32_t active_count, left_count, free_count, rows;
} Search;

/* whether there are slots for a step: those that no row speaks of any more are free again */
static int has_room(Search *s, const Batch *b) {
    if (s->free_count >= s->rows) return 1;
    memset(s->marks, 0, (size_t)b->room);
    for (int i = 0; i < s->active_count; i++) {
        const Sentence *each = s->sentences + s->active[i];
        for (int r = each->first; r < each->first + each->rows; r++)
            for (int t = 0; t < each->count; t++) s->marks[s->now.slots[(long)r * s->stride + t]] = 1;
    }
    s->free_count = 0;
    for (int64_t slot = b->room - 1; slot >= 0; slot--)
        if (!s->marks[slot]) s->free[s->free_count++] = (int32_t)slot;
    return s->free_count >= s->rows && s->free_count >= b->room / 4; /* else this would be done at every step */
}

/* what a row may not write now: an end that is too early, and what would go on with a loop */
static void bar(Search *s, const Sentence *each, int r) {
    int32_t *barred = s->barred + (long)r * s->most_barred, bars = 0;
    if (each->count < each->least) barred[bars++] = s->end;
    for (int p = 1; s->guard && p <= PERIODS; p++)
        if (s->now.runs[(long)r * PERIODS + p - 1] >= each->bounds[p - 1]) {
            barred[bars++] = s->now.written[(long)r * s->stride + each->count - p];
            s->now.acted[r] = 1;
        }
    s->bars[r] = bars;
}

/* the rows of a step; `keep` of each row's logits are enough, whatever is barred */
static void gather(Search *s, Batch *b) {
    int most = 0;
    for (int i = 0; i < s->active_count; i++) {
        const Sentence *each = s->sentences + s->active[i];
        for (int r = each->first; r < each->first + each->rows; r++) {
            s->now.slots[(long)r * s->stride + each->count] = s->free[--s->free_count];
            b->places[r] = each->count;
            b->memory[r] = each->memory;
            b->memory_layer[r] = each->memory_layer;
            b->memory_tokens[r] = each->memory_tokens;
            bar(s, each, r);
            most = s->bars[r] > most ? s->bars[r] : most;
        }
    }
    b->tokens = s->now.tokens;
    b->slots = s->now.slots;
    b->rows = s->rows;
    b->keep = (s->width == 1 ? 1 : s->width + 1) + most;
}

static float norm_of(const Search *s, int count) {
    return powf(s->gnmt ? (5.0f + count) / 6.0f : (float)count, s->penalty);
}

/* put an answer away, if it is one of the `width` best; of equal ones the first */
static void answer(Search *s, int place, const Answer *given, const int32_t *ids) {
    Sentence *each = s->sentences + place;
    Answer *held = s->answers + (long)place * s->width;
    int32_t *texts = s->ids + (long)place * s->width * s->stride;
    if (each->answers == s->width) {
        int worst = s->width - 1;
        for (int a = worst - 1; a >= 0; a--)
            if (held[a].score < held[worst].score) worst = a;
        if (given->score <= held[worst].score) return;
        const size_t behind = (size_t)(s->width - 1 - worst);
        memmove(held + worst, held + worst + 1, behind * sizeof *held);
        memmove(texts + (long)worst * s->stride, texts + (long)(worst + 1) * s->stride, behind * s->stride * 4);
        each->answers--;
    }
    held[each->answers] = *given;
    memcpy(texts + (long)each->answers * s->stride, ids, 4 * (size_t)given->pieces);
    each->answers++;
}

typedef struct {
    float total;
    int32_t row, piece;
} Candidate;

/* the best continuations of a sentence's rows, in order; answers how many */
static int candidates(const Search *s, const Batch *b, const Sentence *each, Candidate *best) {
    const int most = s->width == 1 ? 1 : 2 * s->width, own = s->width == 1 ? 1 : s->width + 1;
    int found = 0;
    for (int r = each->first; r < each->first + each->rows; r++) {
        const float *logits = b->best + (long)r * b->keep, before = s->now.totals[r] - b->whole[r];
        const int32_t *barred = s->barred + (long)r * s->most_barred;
        for (int k = 0, taken = 0; k < b->keep && taken < own && logits[k] > -INFINITY; k++) {
            const int32_t piece = (int32_t)b->best_ids[(long)r * b->keep + k];
            int may = 1;
            for (int i = 0; i < s->bars[r]; i++) may &= barred[i] != piece;
            if (!may) continue;
            const float total = logits[k] + before;
            if (found == most && total <= best[most - 1].total) break;
            taken++;
            int at = found < most ? found++ : most - 1;
            for (; at > 0 && best[at - 1].total < total; at--) best[at] = best[at - 1];
            best[at] = (Candidate){total, r, piece};
        }
    }
    return found;
}

/* a row of the next step: what its parent has read and written, and a piece */
static void go_on(Search *s, const Sentence *each, const Candidate *chosen, int r) {
    const long from = (long)chosen->row * s->stride, to = (long)r * s->stride;
    const int count = each->count; /* the piece is counted */
    memcpy(s->next.slots + to, s->now.slots + from, 4 * (size_t)count);
    memcpy(s->next.written + to, s->now.written + from, 4 * (size_t)(count - 1));
    s->next.written[to + count - 1] = s->next.tokens[r] = chosen->piece;
    s->next.totals[r] = chosen->total;
    s->next.acted[r] = s->now.acted[chosen->row];
    if (!s->guard) return;
    for (int p = 1; p <= PERIODS; p++) {
        const int same = count > p && s->next.written[to + count - 1 - p] == chosen->piece;
        s->next.runs[(long)r * PERIODS + p - 1] = same ? s->now.runs[(long)chosen->row * PERIODS + p - 1] + 1 : 0;
    }
}

/* whether no answer would be another if the sentence went on; its best row is the first */
static int is_over(const Search *s, const Sentence *each, const Answer *held) {
    if (!each->rows) return 1;
    if (s->width == 1) return 0;
    if (s->stopping == FULL) return each->answers == s->width;
    const float best = s->next.totals[each->first] / norm_of(s, s->stopping == SAFE ? each->limit : each->count);
    int better = 0;
    for (int a = 0; a < each->answers; a++) better += held[a].score >= best;
    return better >= (s->stopping == SAFE ? s->needed : s->width);
}

/* a sentence's part of a step, behind the model's; answers whether it goes on, with its rows from `first` on */
static int choose(Search *s, const Batch *b, int place, int first) {
    Sentence *each = s->sentences + place;
    Candidate best[2 * s->width];
    const int found = candidates(s, b, each, best);
    each->count++;
    each->rows = 0;
    for (int c = 0; c < found; c++) {
        const long row = best[c].row;
        if (best[c].piece != s->end) {
            if (each->rows < s->width) go_on(s, each, best + c, first + each->rows++);
        } else if (c < s->width) {
            Answer given = {best[c].total / norm_of(s, each->count), best[c].total, each->count - 1, 1, s->now.acted[row]};
            answer(s, place, &given, s->now.written + row * s->stride);
        }
    }
    each->first = first;
    if (is_over(s, each, s->answers + (long)place * s->width)) return 0;
    if (each->count < each->limit) return 1;
    for (int r = first; r < first + each->rows && each->answers < s->width; r++) { /* what is unfinished fills up */
        const float total = s->next.totals[r];
        Answer given = {total / norm_of(s, each->count), total, each->count, 0, s->next.acted[r]};
        answer(s, place, &given, s->next.written + (long)r * s->stride);
    }
    return 0;
}

/* search until no more than `least` sentences go on; answers 1 if slots are wanting before that */
int32_t regard_search(const Model *m, Batch *b, Search *s, int32_t least) {
    int wanting = 0;
    s->left_count = 0;
    for (int i = 0; i < s->active_count; i++) {
        Sentence *each = s->sentences + s->active[i];
        if (each->rows) continue;
        each->first = s->rows++, each->rows = 1, each->count = each->answers = 0;
        s->now.totals[each->first] = 0.0f;
        s->now.tokens[each->first] = each->begin;
        s->now.acted[each->first] = 0;
        memset(s->now.runs + (long)each->first * PERIODS, 0, 4 * PERIODS);
    }
    open_tiles();
    while (s->active_count > least && !(wanting = !has_room(s, b))) {
        gather(s, b);
        through(m, &m->decoder, b, ALONE);
        last_norm(m, &m->decoder, b, ALONE);
        best_of(m, b);
        int stay = 0, rows = 0;
        for (int i = 0; i < s->active_count; i++) {
            const int place = s->active[i];
            if (choose(s, b, place, rows)) {
                s->active[stay++] = place;
                rows += s->sentences[place].rows;
            } else {
                s->left[s->left_count++] = place;
            }
        }
        s->active_count = stay, s->rows = rows;
        Rows last = s->now;
        s->now = s->next, s->next = last;
    }
    close_tiles();
    return wanting;
}
